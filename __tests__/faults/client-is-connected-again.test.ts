import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { type AnyLock, EVERY_LOCK } from '../support/every-lock';
import { LOCK_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, type ClientKind, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { scriptsRun } from '../support/server-load';
import { createRegistry, elapsed } from '../support/test-registry';
import { until } from '../support/until';

/** ms for which the client stays closed: long enough for a first removal of what it left to fail. */
const CLOSED_FOR = 200;

const REJECTED = { name: 'CannotAcquireLockError' };

describePrivate('the application closes its client, and connects it again', () => {
  const redis = PrivateRedis.install();

  /** A registry with an attempt that Redis has granted, and whose reply is on its way. */
  const attempting = async (kind: ClientKind, { lockType, acquire }: AnyLock) => {
    const proxy = await redis.proxy();
    const client = await clientKinds[kind](proxy.address);
    const { registry, registryKey } = createRegistry(client, { lockType });
    await (await acquire(registry, 'warm-up', {})).unlock();
    const keys = () => redis.admin.keys(`*${registryKey}:key*`);
    proxy.replies.hold = true;
    const rejected = expect(acquire(registry, 'key', {})).rejects.toMatchObject(REJECTED);
    await until(async () => (await keys()).length > 0);
    return { proxy, client, registry, rejected, keys };
  };

  const [anyLock] = EVERY_LOCK as [AnyLock];
  it.each([
    ...EVERY_LOCK.map((lock) => ({ kind: CLIENT_KINDS[0] as ClientKind, lock, name: lock.name })),
    ...CLIENT_KINDS.slice(1).map((kind) => ({ kind, lock: anyLock, name: anyLock.name })),
  ])('P2: what an attempt for $name left is removed then: $kind', async ({ kind, lock }) => {
    const { proxy, client, rejected, keys } = await attempting(kind, lock);
    client.destroy();
    await rejected;
    proxy.replies.hold = false;
    await sleep(CLOSED_FOR);
    await client.connect();
    // It would live for a minute, or half of one.
    await until(async () => (await keys()).length === 0);
  });

  it.each(LOCK_TYPES)('P7: a %s lock that could not be unlocked meanwhile is free then', async (lockType) => {
    const client = await redis.connect();
    const { registry, nameOf } = createRegistry(client, { lockType });
    const lease = await registry.obtain('key').lock();
    client.destroy();
    await expect(lease.unlock()).rejects.toMatchObject({
      name: 'LockReleaseError',
      message: expect.stringContaining('the client failed: The client is closed'),
    });
    await sleep(CLOSED_FOR);
    await client.connect();
    await until(async () => (await redis.admin.exists(nameOf('key'))) === 0);
  });

  it.each(EVERY_LOCK)(
    'P2 P9: a rejected waiter for $name keeps nobody out then',
    async ({ lockType, acquire, keepOut = acquire }) => {
      const client = await redis.connect();
      const { registry, registryKey } = createRegistry(client, { lockType });
      const { registry: other } = createRegistry(await redis.connect(), { registryKey, lockType });
      const held = await keepOut(other, 'key', {});
      const before = await scriptsRun(redis.admin);
      const rejected = expect(acquire(registry, 'key', {})).rejects.toMatchObject(REJECTED);
      await until(async () => (await scriptsRun(redis.admin)) > before); // it was refused, and waits
      client.destroy();
      await rejected;
      await sleep(CLOSED_FOR);
      await client.connect();
      await held.unlock();
      await (await keepOut(other, 'key', { waitTime: 10_000 })).unlock();
    },
  );

  it('P8: its registry closes at once while the client is closed', async () => {
    const { client, registry, rejected } = await attempting('a client', anyLock);
    client.destroy();
    await rejected;
    expect(await elapsed(registry.close())).toBeLessThan(400 + machineDelay());
  });
});
