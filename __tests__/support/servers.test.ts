import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { startRedis } from '../../support/redis';
import { createEmbeddedClient, describeEmbedded, describeReal, uniqueKey } from './redis';
import { until } from './until';

describeReal('startRedis', () => {
  it.each([false, true])('starts a private server that runs scripts (tcp: %s)', async (port) => {
    const server = await startRedis({ port });
    const client = createClient({ socket: server.address });
    await client.connect();
    expect(await client.eval('return 1')).toBe(1);
    expect(await client.configGet('save')).toEqual({ save: '' });
    client.destroy();
    await server.stop();
    expect(existsSync(server.dir)).toBe(false);
    expect(() => process.kill(server.pid, 0)).toThrow('ESRCH');
  });

  it('quotes the log of a server that does not start', async () => {
    await expect(startRedis({ args: ['--maxmemory-policy', 'nonsense'] })).rejects.toThrow(
      /exited during its start.*nonsense/s,
    );
  });

  it('starts again on the files of a killed server', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'redis-'));
    const settings = { dir, args: ['--appendonly', 'yes'] };
    const first = await startRedis(settings);
    const client = createClient({ socket: { ...first.address, reconnectStrategy: 5 } });
    client.on('error', () => {});
    await client.connect();
    await client.set('key', 'kept');
    first.kill('SIGKILL');
    await until(() => !client.isReady);
    const second = await startRedis(settings);
    expect(await client.get('key')).toBe('kept');
    client.destroy();
    await second.stop();
    await rm(dir, { recursive: true });
  });
});

describeEmbedded('startEmbeddedRedis', () => {
  it('runs scripts', async () => {
    const client = await createEmbeddedClient();
    const key = uniqueKey();
    expect(await client.eval("return redis.call('incr', KEYS[1])", { keys: [key] })).toBe(1);
  });
});
