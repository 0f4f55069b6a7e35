import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Redis } from '@upstash/redis';
import { createClient } from 'redis';
import { type LockWarning, type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { traitsOf } from '../../lib/api/lock-types';
import { fromUpstash } from '../../lib/clients/upstash';
import { LOCK_TYPES } from '../../lib/kinds';
import { startUpstashServer, type UpstashServer, upstashOptions } from '../../support/upstash-server';
import { connected } from '../support/connected';
import { describeReal, realRedis, uniqueKey } from '../support/redis';

const connect = () => connected(createClient({ ...realRedis, RESP: 2 }));

describeReal('A registry on a client of @upstash/redis', () => {
  let redis: Awaited<ReturnType<typeof connect>>;
  let server: UpstashServer;
  const registries: RedisLockRegistry[] = [];
  const warnings: LockWarning[] = [];

  beforeAll(async () => {
    redis = await connect();
  });

  afterAll(() => redis.destroy());

  beforeEach(async () => {
    server = await startUpstashServer(redis);
  });

  afterEach(async () => {
    await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
    server.stop();
    expect(warnings.splice(0)).toEqual([]);
  });

  const upstash = (options: object = {}): Redis => new Redis({ ...upstashOptions(server), ...options });

  function registryOn(client: Redis, options: Partial<RedisLockRegistryOptions> = {}): RedisLockRegistry {
    const all = {
      registryKey: uniqueKey(),
      onWarning: (warning: LockWarning) => void warnings.push(warning),
      ...options,
    };
    const registry = new RedisLockRegistry(fromUpstash(client), all);
    registries.push(registry);
    return registry;
  }

  it.each(LOCK_TYPES.filter((type) => !traitsOf(type).polls))(
    'A registry on Upstash refuses the type %s, whose waiters are notified',
    (lockType) => {
      expect(() => registryOn(upstash(), { lockType })).toThrow(
        `Expected \`lockType\` to be "spin", as this client gets no messages, got "${lockType}", which waits for them`,
      );
    },
  );

  it('A request that was aborted by the signal of the client is no answer of Redis', async () => {
    const controller = new AbortController();
    const registry = registryOn(upstash({ signal: controller.signal }), { commandTimeout: 500, unavailableAfter: 500 });
    const lease = await registry.obtain('key').lock({ ttl: 60_000 });
    controller.abort('1');
    await expect(lease.eval("return redis.call('SET', KEYS[1], 'x')", { keys: ['data'] })).rejects.toMatchObject({
      name: 'LeaseEvalError',
    });
    await expect(registry.obtain('other').tryLock()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
  });

  it('A registry on Upstash polls every 500 ms, or as often as the option says', async () => {
    const registryKey = uniqueKey();
    await redis.set(`${registryKey}:key`, 'another', { PX: 60_000 });
    const attempts = async (options: object): Promise<number> => {
      const registry = registryOn(upstash(), { registryKey, ...options });
      await registry.obtain('key').tryLock(); // the script is known
      const before = server.commands.length;
      // Its end is not asked for: a busy machine may answer the last request of HTTP too late.
      await registry
        .obtain('key')
        .tryLock({ waitTime: 1_200 })
        .catch(() => null);
      return server.commands.length - before;
    };
    // At 0, 500, 1,000 ms, and at the end; some once more where the machine is busy. Every 100 ms would be 13.
    expect(await attempts({})).toBeLessThanOrEqual(9);
    expect(await attempts({ idleBetweenTries: 20 })).toBeGreaterThan(9);
  });

  it.each([true, false])(
    'A registry on Upstash reads owners that look like JSON as they are (automaticDeserialization %s)',
    async (automatic) => {
      const registryKey = uniqueKey();
      const registry = registryOn(upstash({ automaticDeserialization: automatic }), { registryKey });
      for (const owner of ['true', '1', '{"a":1}']) {
        await redis.set(`${registryKey}:key`, owner, { PX: 60_000 });
        expect(await registry.obtain('key').inspect()).toMatchObject({ held: true, owner });
        await expect(registry.obtain('key').lock({ waitTime: 500 })).rejects.toMatchObject({
          code: 'ERR_LOCK_TIMEOUT',
        });
      }
    },
  );

  it('A registry on Upstash has semaphores and read/write locks, whose waiters poll without a warning', async () => {
    const options = { idleBetweenTries: 20, registryKey: uniqueKey() };
    const [one, other] = [registryOn(upstash(), options), registryOn(upstash(), options)];
    for (const [holder, waiter] of [
      [one.semaphore('permits', { permits: 1 }), other.semaphore('permits', { permits: 1 })],
      [one.readWrite('prices').read, other.readWrite('prices').write],
    ] as const) {
      const lease = await holder.lock();
      const waiting = waiter.lock({ waitTime: 30_000 });
      expect(await waiter.tryLock()).toBeNull();
      await lease.unlock();
      await (await waiting).unlock();
    }
  });

  it('A registry on Upstash lists locks, and semaphores beside them', async () => {
    const registry = registryOn(upstash());
    const locks = [...['a', 'b'].map((key) => registry.obtain(key)), registry.semaphore('c', { permits: 2 })];
    const leases = await Promise.all(locks.map((lock) => lock.lock()));
    const keys: string[] = [];
    // Enough at once that the first step asks where the keys are: they go together from then on.
    for (let step = 0; step < 20; step++) for await (const { key } of registry.list()) keys.push(key);
    expect(keys.slice(-3).sort()).toEqual(['a', 'b', 'c']);
    for (const lease of leases) await lease.unlock();
  });

  it('A registry on Upstash rejects at once with what the server says, without the command that it was about', async () => {
    const error = await registryOn(upstash({ token: 'wrong' }))
      .obtain('key')
      .lock()
      .catch((rejected) => rejected);
    expect(error).toMatchObject({ name: 'CannotAcquireLockError', cause: { name: 'ReplyError' } });
    expect(error.cause.message).toBe('WRONGPASS wrong token');
  });

  it('A registry on Upstash passes on the error of a script of the application’s', async () => {
    const lease = await registryOn(upstash()).obtain('key').lock();
    await expect(lease.eval("return redis.error_reply('SOLD out')")).rejects.toMatchObject({ message: 'SOLD out' });
    await lease.unlock();
  });

  it('A registry on Upstash tries again after an answer that is none of Redis, and removes what it may have left (P2)', async () => {
    const registryKey = uniqueKey();
    const registry = registryOn(upstash(), { registryKey, commandTimeout: 500, idleBetweenTries: 20 });
    await registry.obtain('other').run(() => undefined);
    server.failures.push([502, '<html>'], [500, '{"error":"try again later"}']);
    const lease = await registry.obtain('key').lock();
    await lease.unlock();
    expect(server.failures).toEqual([]);
    server.failures.push(...Array(100).fill([502, '<html>']));
    await expect(registry.obtain('key').tryLock()).rejects.toThrow(/the client failed: .*<html>/s);
    server.failures.splice(0);
    await registry.close();
    expect(await redis.exists(`${registryKey}:key`)).toBe(0);
  });

  it('A registry on Upstash refuses minReplicas', () => {
    expect(() => registryOn(upstash(), { minReplicas: 1 })).toThrow(/minReplicas 1/);
  });

  it('A client of Upstash that is given without the adapter names it, and the adapter refuses what is no such client', () => {
    expect(() => new RedisLockRegistry(upstash() as unknown as RedisClient, { registryKey: 'orders' })).toThrow(
      /a client of @upstash\/redis; wrap it: fromUpstash\(redis\), the adapter in 'redis-lock-registry\/upstash'/,
    );
    expect(() => fromUpstash({ url: 'https://…', token: 'secret' } as never)).toThrow(
      /^Expected a Redis of @upstash\/redis, got an options object/,
    );
    expect(() => fromUpstash(undefined as never)).toThrow(/got undefined$/);
    expect(() => fromUpstash(redis as never)).toThrow(/needs no adapter/);
  });
});
