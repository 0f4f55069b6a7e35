import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, it, jest } from '@jest/globals';
import { connectTo } from '../../../lib/tools/cli/connect';
import { run } from '../../../lib/tools/cli/run';
import type { Signals } from '../../../lib/tools/cli/signals';
import { FakeClock } from '../../support/fake-clock';
import { mockRedis, refused } from '../../support/mock-redis';
import { until } from '../../support/until';

const time = FakeClock.install();

it.each([true, false])('`run` says that it has waited for long, but not with --quiet: %s', async (quiet) => {
  const client = mockRedis();
  client.evalSha.mockResolvedValue(refused(600_000));
  const connection = { client, close: () => undefined };
  const unlessOne = (connecting: Promise<unknown>) => connecting.catch(() => connection);
  const signals = { unlessOne, beforeCommand: new AbortController().signal } as unknown as Signals;
  const said = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  const values = { quiet, url: 'redis://127.0.0.1:1', wait: '40s' };
  const ended = expect(run({ command: 'run', operands: ['key'], rest: ['true'], values }, signals)).rejects.toThrow(
    'The lock "key" is not free',
  );
  await until(() => client.sent > 0);
  await time.advance(41_000);
  await ended;
  // Node's own warnings go there too.
  const lines = said.mock.calls.filter(([line]) => String(line).startsWith('redis-locks: '));
  said.mockRestore();
  if (quiet) expect(lines).toEqual([]);
  // A slow test also says that it waits: that is after 1 s of real time.
  else expect(lines).toContainEqual([expect.stringContaining('A caller has waited for lock "key" for 30 s')]);
});

it('A server that does not answer is left when its time is over: its connection would keep the process', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.resume())).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const refused = expect(connectTo({ url })).rejects.toThrow('cannot be reached');
  await until(() => sockets.length > 0);
  await time.advance(5_000);
  await refused;
  await until(() => sockets[0]?.destroyed);
  server.close();
});
