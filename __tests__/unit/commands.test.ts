import { expect, it, jest } from '@jest/globals';
import type { RedisClient } from '../../lib';
import { commandsOf, destroy, notAdapted, type OwnConnection } from '../../lib/redis/client';
import { mockRedis, noScript, silence } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const registryOn = (client: RedisClient, options: Parameters<typeof createRegistry>[1] = {}) =>
  createRegistry(client, { registryKey: 'orders', idleBetweenTries: 100, ...options }).registry;

it('An uncontended lock and unlock are two commands: an acquisition and a release', async () => {
  const redis = mockRedis();
  const lease = await registryOn(redis).obtain('42').lock();
  expect(redis.sent).toBe(1);
  await lease.unlock();
  expect(redis.sent).toBe(2);
  expect(redis.eval).not.toHaveBeenCalled();
  const [taken, givenBack] = redis.calls;
  expect(taken?.keys).toEqual(['orders:42']);
  expect(givenBack?.keys).toEqual(['orders:42']);
  // The release names the acquired key and owner.
  expect(givenBack?.arguments?.[0]).toBe(taken?.arguments?.[0]);
});

it('A ttl is rounded up to whole milliseconds, as Redis requires', async () => {
  const redis = mockRedis();
  await registryOn(redis).obtain('42').lock({ ttl: 1_500.4 });
  expect(redis.calls[0]?.arguments?.[1]).toBe('1501');
});

it('A registry requests once from a node-redis client commands without a timeout and with default reply types', async () => {
  const commands = mockRedis();
  const withCommandOptions = jest.fn(() => commands);
  // A pool and a cluster have `_commandOptions` too.
  const client = { ...mockRedis(), _commandOptions: undefined, withCommandOptions };
  const registry = registryOn(client);
  await registry.run('42', () => undefined);
  await registry.run('43', () => undefined);
  expect(withCommandOptions.mock.calls).toEqual([[{ timeout: 0, typeMapping: {} }]]);
  expect(commands.sent).toBe(4);
  expect(client.eval).not.toHaveBeenCalled();
  expect(client.evalSha).not.toHaveBeenCalled();
});

it.each([
  ['none', {}, {}, { timeout: 0 }],
  ['one of its own', { typeMapping: { 36: Buffer } }, {}, { timeout: 0, typeMapping: {} }],
  ['one that it was given later', {}, { typeMapping: { 36: Buffer } }, { timeout: 0, typeMapping: {} }],
])('A registry asks a plain client for as few options as it can, with a type mapping: %s', (_, own, later, asked) => {
  const withCommandOptions = jest.fn(() => mockRedis());
  const options = { commandOptions: own };
  registryOn({ ...mockRedis(), socketEpoch: 1, options, _commandOptions: later, withCommandOptions } as RedisClient);
  expect(withCommandOptions.mock.calls).toEqual([[asked]]);
});

it('A command without keys and arguments goes to a plain client of node-redis as one without', async () => {
  const sendCommand = jest.fn<(...given: unknown[]) => Promise<unknown>>().mockResolvedValue(1);
  await commandsOf({
    ...mockRedis(),
    socketEpoch: 1,
    _commandOptions: undefined,
    sendCommand,
  } as object as RedisClient).eval('x');
  expect(sendCommand).toHaveBeenCalledWith(['EVAL', 'x', '0'], { timeout: 0 });
});

function closed(): never {
  throw new Error('closed');
}

it('A connection of our own is destroyed, though that throws or rejects where it is closed already', async () => {
  for (const failing of [async () => closed(), closed]) {
    const own = jest.fn(failing);
    await destroy({ destroy: own } as object as OwnConnection);
    expect(own).toHaveBeenCalledTimes(1);
  }
});

it('A registry does not change the client', async () => {
  const redis = Object.freeze({ eval: async () => 1, evalSha: async () => 1 });
  await registryOn(redis).run('42', () => undefined);
});

it('An adapter says of a client that needs none that it needs none, and of another one what it is', () => {
  const needsNone = 'a client that needs no adapter, as those of node-redis: pass it to RedisLockRegistry as it is';
  const kind = { what: 'one', make: 'make()', entryPoint: 'one', members: {} };
  const values = [mockRedis(), { evalSha: silence }, { eval: silence }, null];
  const described = values.map((value) => notAdapted(value, kind).message);
  const options = 'an options object; make a client: make()';
  expect(described).toEqual([needsNone, options, options, 'null'].map((what) => `Expected one, got ${what}`));
});

it("A registry gives node-redis' plain client the commands as they go to the server, with options of our own", async () => {
  // What the library recognises it by, and its method for any command.
  const sendCommand = jest.fn<(args: string[], options: unknown) => Promise<unknown>>().mockResolvedValue(1);
  const client = { ...mockRedis(), socketEpoch: 1, _commandOptions: undefined, sendCommand };
  sendCommand.mockRejectedValueOnce(noScript());
  await registryOn({ ...client, withCommandOptions: () => client }).run('42', () => undefined);
  expect(client.evalSha).not.toHaveBeenCalled();
  expect(client.eval).not.toHaveBeenCalled();
  const [sha, owner, options] = [expect.any(String), expect.any(String), { timeout: 0 }];
  expect(sendCommand.mock.calls).toEqual([
    [['EVALSHA', sha, '1', 'orders:42', owner, '60000'], options],
    [['EVAL', expect.any(String), '1', 'orders:42', owner, '60000'], options],
    [['EVALSHA', sha, '1', 'orders:42', owner, 'UNLINK', 'orders-channel'], options],
  ]);
});
