import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { fromIoredis } from '../../lib/clients/ioredis';
import { type IoredisPackage, ioredisOptions, packages } from '../support/ioredis-packages';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { callsOf } from '../support/server-load';

const each = packages.map((one): [string, IoredisPackage] => [one.name, one]);

/** ioredis repeats by itself what was not answered. With `autoResendUnfulfilledCommands: false` it never settles it. */
describePrivate.each(each)('%s loses its connection after a command was executed', (_name, { single }) => {
  const redis = PrivateRedis.install();

  const open = async (options: object) => {
    const proxy = await redis.proxy();
    const instance = single({ ...ioredisOptions(proxy.address), retryStrategy: () => 5, ...options });
    const registryKey = uniqueKey();
    const registry = new RedisLockRegistry(fromIoredis(instance), { registryKey, fencing: true, idleBetweenTries: 20 });
    await registry.run('warm-up', (lease) => lease.renew());
    const executed = () => callsOf(redis.admin, 'evalsha');
    const close = async () => {
      await registry.close();
      instance.disconnect();
    };
    return { proxy, registry, name: `${registryKey}:key`, executed, close };
  };

  it.each([
    ['with', {}],
    ['without', { autoResendUnfulfilledCommands: false }],
    ['with no limit of retries and', { maxRetriesPerRequest: null }],
  ])('%s repetition: one lease, with the token of the first execution (P11)', async (_case, options) => {
    const { proxy, registry, name, executed, close } = await open(options);
    const before = await executed();
    const lost = proxy.loseReply(name);
    const locking = registry.obtain('key').lock();
    await lost;
    const token = await redis.admin.get(`{${name}}:fence`);
    const lease = await locking;
    expect(String(lease.fencingToken)).toBe(token);
    expect((await executed()) - before).toBeGreaterThanOrEqual(2);
    expect(await redis.admin.get(name)).toMatch(new RegExp(`^${registry.id}:`));
    await lease.unlock();
    expect(await redis.admin.exists(name)).toBe(0);
    await close();
  });

  it('A client that repeats no command: one that is lost fails at once, and not at its deadline', async () => {
    const { proxy, registry, name, close } = await open({ autoResendUnfulfilledCommands: false });
    const lost = proxy.loseRequest(name);
    const trying = registry
      .obtain('key')
      .tryLock()
      .catch((error: unknown) => error);
    await lost;
    expect(await trying).toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { message: 'The connection was lost before Redis replied' },
    });
    await close();
  });
});
