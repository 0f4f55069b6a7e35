import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { fromIoredis } from '../../lib/ioredis';
import { type IoredisPackage, ioredisOptions, packages } from '../support/ioredis-packages';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { callsOf } from '../support/server-load';
import { until } from '../support/until';

const each = packages.map((one): [string, IoredisPackage] => [one.name, one]);

/** ioredis repeats by itself what was not answered. With `autoResendUnfulfilledCommands: false` it never settles it. */
describePrivate.each(each)('%s loses its connection after a command was executed', (_name, { single }) => {
  const redis = PrivateRedis.install();

  const open = async (options: object) => {
    const proxy = await redis.proxy();
    const instance = single({ ...ioredisOptions(proxy.address), retryStrategy: () => 5, ...options });
    const registryKey = uniqueKey();
    const warnings: string[] = [];
    const registry = new RedisLockRegistry(fromIoredis(instance), {
      registryKey,
      fencing: true,
      idleBetweenTries: 20,
      onWarning: ({ code }) => warnings.push(code),
    });
    await registry.run('warm-up', (lease) => lease.renew());
    const executed = () => callsOf(redis.admin, 'evalsha');
    const close = async () => {
      await registry.close();
      instance.disconnect();
    };
    return { proxy, registry, name: `${registryKey}:key`, warnings, executed, close };
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

  it('a release that is repeated is no loss, and does not delete the key of the next holder (P7)', async () => {
    const { proxy, registry, name, warnings, close } = await open({});
    const lease = await registry.obtain('key').lock();
    proxy.replies.hold = true;
    const unlocking = lease.unlock();
    await until(async () => (await redis.admin.exists(name)) === 0);
    await redis.admin.set(name, 'another');
    proxy.reset();
    proxy.replies.hold = false;
    await unlocking;
    expect(await redis.admin.get(name)).toBe('another');
    expect(warnings).toEqual(['RELEASE_UNCERTAIN']);
    await close();
  });

  it('a forced unlock that is repeated does not delete the key of the next holder', async () => {
    const { proxy, registry, name, close } = await open({ maxRetriesPerRequest: null });
    await redis.admin.mSet([name, 'stuck', `${name}-before`, 'stuck']);
    await registry.obtain('key-before').forceUnlock();
    proxy.refuse();
    const lost = proxy.loseReply('stuck');
    const forcing = registry.obtain('key').forceUnlock();
    await lost;
    expect(await redis.admin.set(name, 'next', { NX: true })).toBe('OK');
    await proxy.accept();
    expect(await forcing).toMatchObject({ held: true, owner: 'stuck' });
    expect(await redis.admin.get(name)).toBe('next');
    await close();
  });

  it('a script under the lock runs once, and its repetition is an error; a renewal and an inspection are as if once', async () => {
    const { proxy, registry, name, warnings, executed, close } = await open({});
    const lease = await registry.obtain('key').lock();
    const increment = () => lease.eval("return redis.call('INCR', KEYS[1])", { keys: [`${name}:count`] });
    await increment();
    for (const call of [increment, () => lease.renew(90_000), () => registry.obtain('key').inspect()]) {
      const before = await executed();
      const lost = proxy.loseReply(name);
      const settled = await call().catch((error: unknown) => error);
      await lost;
      expect((await executed()) - before).toBeGreaterThanOrEqual(2);
      if (call === increment) expect(settled).toMatchObject({ name: 'LeaseEvalError' });
      else expect(settled).not.toBeInstanceOf(Error);
    }
    expect(await redis.admin.get(`${name}:count`)).toBe('2');
    expect(lease.remaining).toBeGreaterThan(80_000);
    await lease.unlock();
    expect(warnings).toEqual([]);
    await close();
  });

  it('without repetition a command that is lost fails at once, and not at its deadline', async () => {
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
