import { expect, it } from '@jest/globals';
import type { DistributedLock, LockRegistry } from '../../lib';
import { identifyServer } from '../../support/identify-server';
import { LOCK_TYPES } from '../support/lock-types';
import { Node } from '../support/node';
import { describePrivate, PrivateRedis, untilTheEnd } from '../support/private-redis';
import { callsOf } from '../support/server-load';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

describePrivate('A server of the tests that REDIS_URL names', () => {
  it('is not called silent where it has no INFO', async () => {
    const { address } = await untilTheEnd(Node.start('--rename-command', 'INFO', ''));
    const url = `redis://${address.host}:${address.port}`;
    expect(await identifyServer(url)).toMatch(/^a server that does not say its version \(ERR unknown command/);
    const full = await untilTheEnd(Node.start());
    expect(await identifyServer(`redis://127.0.0.1:${full.address.port}`)).toMatch(/^\w+-server \d+\.\d/);
    await full.kill();
    await expect(identifyServer(`redis://127.0.0.1:${full.address.port}`)).rejects.toThrow('No Redis answers');
  });
});

type SharedLockOf = (registry: LockRegistry) => DistributedLock;
const permit: SharedLockOf = (registry) => registry.semaphore('key', { permits: 1 });
const reading: SharedLockOf = (registry) => registry.readWrite('key').read;
const writing: SharedLockOf = (registry) => registry.readWrite('key').write;

async function clientWith(redis: PrivateRedis, username: string, ...rules: string[]) {
  await redis.admin.sendCommand(['ACL', 'SETUSER', username, 'on', '>secret', '~*', ...rules]);
  return redis.connect({ username, password: 'secret' });
}

describePrivate('A spin lock of a user', () => {
  const redis = PrivateRedis.install();

  it('A spin lock of a user who may not UNLINK is deleted with DEL, and UNLINK is not tried again', async () => {
    const { registry } = createRegistry(await clientWith(redis, 'no-unlink', '&*', '+@all', '-unlink'));
    await registry.run('key', () => undefined);
    expect(await redis.admin.dbSize()).toBe(0);
    // The right is granted now, but the registry remembers that it was missing.
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'no-unlink', '+unlink']);
    const before = await callsOf(redis.admin, 'unlink');
    await registry.run('key', () => undefined);
    expect(await callsOf(redis.admin, 'unlink')).toBe(before);
    expect(await redis.admin.dbSize()).toBe(0);
  });

  it('A spin lock of a user who may UNLINK is deleted with UNLINK', async () => {
    const before = await callsOf(redis.admin, 'unlink');
    await createRegistry(redis.admin).registry.run('key', () => undefined);
    expect(await callsOf(redis.admin, 'unlink')).toBe(before + 1);
  });

  it('A pub-sub lock of a user without the right to count listeners is inspected without their number', async () => {
    const client = await clientWith(redis, 'no-pubsub', '&*', '+@all', '-pubsub');
    const state = await createRegistry(client, { lockType: 'pub-sub' }).registry.obtain('key').inspect();
    expect(state).toMatchObject({ held: false, waiting: undefined });
  });

  it('A spin lock of a user without rights on the channel of older versions can be released, with one warning', async () => {
    const client = await clientWith(redis, 'no-legacy', 'resetchannels', '&*-channel:*', '+@all');
    const { registry, warnings } = createRegistry(client, { legacyChannel: true });
    await registry.run('key', () => undefined);
    expect(warnings).toMatchObject([{ code: 'NOTIFICATION_REFUSED' }]);
  });
});

describePrivate.each(LOCK_TYPES)('A %s lock of a user without rights on channels', (lockType) => {
  const redis = PrivateRedis.install();

  it.each([0, 300])(
    'A lock of a user without rights on channels goes to others, with one warning that they are not notified, minHold %d',
    async (minHold) => {
      const { registry, registryKey, warnings } = createRegistry(
        await clientWith(redis, 'no-channels', 'resetchannels', '+@all'),
        { lockType },
      );
      const other = createRegistry(redis.admin, { lockType, registryKey, subscriber: await redis.connect() });
      for (let round = 0; round < 2; round++) {
        const lease = await registry.obtain('key').lock({ ttl: 60_000, minHold });
        const waiting = other.registry.run('key', () => undefined);
        await until(async () => (await other.registry.obtain('key').inspect()).waiting !== 0);
        await lease.unlock();
        await waiting;
      }
      expect(await registry.once('key', () => 'result', { keepFor: 1_000 })).toBe('result');
      expect(warnings.map(({ code }) => code)).toEqual(['NOTIFICATION_REFUSED']);
      expect(other.warnings).toEqual([]);
    },
  );
});

describePrivate('A shared lock of a user without rights on channels', () => {
  const redis = PrivateRedis.install();

  it.each<[string, held: SharedLockOf, awaited: SharedLockOf]>([
    ['a permit', permit, permit],
    ['a lease for writing', writing, reading],
    ['a lease for reading', reading, writing],
  ])(
    'A user without rights on channels gives back %s that others wait for, with one warning',
    async (_, held, awaited) => {
      const client = await clientWith(redis, 'no-channels', 'resetchannels', '+@all');
      const { registry, registryKey, warnings } = createRegistry(client);
      const other = createRegistry(redis.admin, { registryKey, subscriber: await redis.connect() });
      for (const waiting of [[other.registry], [other.registry, registry], [registry]]) {
        const lease = await held(registry).lock({ ttl: 60_000 });
        const calls = waiting.map((one) => awaited(one).lock());
        await until(async () => (await held(registry).inspect()).waiting === waiting.length);
        await lease.unlock();
        await Promise.all(calls.map(async (call) => (await call).unlock()));
      }
      expect(warnings.filter(({ code }) => code === 'NOTIFICATION_REFUSED')).toHaveLength(1);
    },
  );
});
