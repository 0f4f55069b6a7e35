import { expect, it } from '@jest/globals';
import { startCluster } from '../support/cluster';
import { type AnyLock, EVERY_LOCK } from '../support/every-lock';
import { type ClientKind, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, elapsed } from '../support/test-registry';
import { until } from '../support/until';

/** They say whether they have a connection, as a pool does not. */
const OTHER_KINDS: ClientKind[] = ['a client of redis 5', 'a client of ioredis'];
const [anyLock] = EVERY_LOCK as [AnyLock];

describePrivate('the client says that it has no connection', () => {
  const redis = PrivateRedis.install();

  it.each([
    ...EVERY_LOCK.map((lock) => ({ kind: 'a client' as ClientKind, ...lock })),
    ...OTHER_KINDS.map((kind) => ({ kind, ...anyLock })),
  ])(
    'P1: a single attempt for $name fails soon, says why, and leaves nothing: $kind',
    async ({ kind, lockType, acquire }) => {
      const proxy = await redis.proxy();
      const client = await clientKinds[kind](proxy.address);
      const { registry, registryKey } = createRegistry(client, { lockType, commandTimeout: 20_000 });
      await (await acquire(registry, 'key', { waitTime: 0 })).unlock();
      proxy.refuse();
      proxy.reset();
      await until(() => client.isReady === false);
      const call = acquire(registry, 'key', { waitTime: 0 });
      const rejected = expect(call).rejects.toMatchObject({
        name: 'CannotAcquireLockError',
        message: expect.stringMatching(/the client failed: .*ECONN(REFUSED|RESET)/),
      });
      // Much less than the time of a command.
      expect(await elapsed(call)).toBeLessThan(5_000);
      await rejected;
      await proxy.accept();
      await until(() => client.isReady);
      await registry.run('other', () => undefined);
      expect(await redis.admin.keys(`${registryKey}:key*`)).toEqual([]);
      await (await acquire(registry, 'key', { waitTime: 0 })).unlock();
    },
  );
});

describePrivate('a cluster says that it has no connection to one of its masters', () => {
  it('P1: single attempts for its keys fail soon, and others take their locks', async () => {
    const servers = await startCluster({ nodeTimeout: 60_000 });
    const client = await servers.connect();
    try {
      const { registry } = createRegistry(client, { commandTimeout: 20_000 });
      const [lost, other] = [registry.obtain('{foo}'), registry.obtain('{bar}')];
      for (const lock of [lost, other]) await lock.run(() => undefined);
      const { master, slot } = await servers.ownersOf('foo');
      await master.kill();
      await until(() => client.slots[slot]?.master.client?.isReady === false);
      const call = lost.tryLock();
      const rejected = expect(call).rejects.toMatchObject({
        name: 'CannotAcquireLockError',
        message: expect.stringMatching(/the client failed: .*(ECONNREFUSED|Socket closed)/),
      });
      expect(await elapsed(call)).toBeLessThan(5_000);
      await rejected;
      expect(await (await other.tryLock())?.unlock()).toBeUndefined();
      await registry.close({ timeout: 0 });
    } finally {
      client.destroy();
      await servers.stop();
    }
  });
});
