import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { Oracle } from '../support/oracle';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, elapsed, lossOf, rejection, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 1_000;

describePrivate.each(CLIENT_KINDS)('the server of %s is frozen', (kind) => {
  const redis = PrivateRedis.install();
  let locks: TestRegistry;
  let other: TestRegistry;

  beforeEach(async () => {
    const registryKey = `frozen-${kind}`;
    const options = { registryKey, expireAfter: TTL, commandTimeout: 400, fencing: true };
    locks = createRegistry(await clientKinds[kind](redis.address), options);
    other = createRegistry(await clientKinds[kind](redis.address), options);
  });

  afterEach(() => redis.thaw());

  it('P1 P3 P4 P7: the signal aborts within the ttl, unlock is bounded, and there is no double grant afterwards', async () => {
    const oracle = new Oracle(redis.admin);
    const startedAt = performance.now();
    const lease = await locks.registry.obtain('key').lock();
    const given = await locks.registry.obtain('given').lock();
    const waiting = [locks, other].map(async ({ registry }) => {
      const next = await registry.obtain('key').lock();
      const section = await oracle.section(() => next.remaining > 0);
      oracle.write(next.fencingToken);
      await next.unlock();
      return section;
    });
    redis.freeze();
    const limit = 400 + 200;
    expect(await rejection(given.unlock(), { name: 'LockReleaseError' })).toBeLessThan(limit + machineDelay());
    const trying = other.registry.obtain('free').tryLock();
    expect(await rejection(trying, { name: 'CannotAcquireLockError' })).toBeLessThan(limit + machineDelay());
    const { reason, at } = await lossOf(lease);
    expect(reason).toBe('unconfirmed');
    expect(at - startedAt).toBeLessThan(TTL + 100 + machineDelay());
    redis.thaw();
    // All buffered attempts are executed now.
    expect(await Promise.all(waiting)).toEqual([true, true]);
    expect(oracle.violations).toEqual([]);
    expect(oracle.entered).toBe(2);
    await until(async () => (await redis.admin.keys(`frozen-${kind}:*`)).length === 0, { within: 5_000 });
  });

  it('P1: acquisitions settle by their deadlines: signal, waitTime, commandTimeout, unavailableAfter', async () => {
    const timeouts = { commandTimeout: 400, unavailableAfter: 700 };
    const { registry } = createRegistry(await clientKinds[kind](redis.address), timeouts);
    await registry.run('warm-up', () => undefined);
    redis.freeze();
    const failure = { name: 'CannotAcquireLockError' };
    const startedAt = performance.now();
    const settling = [
      [registry.obtain('a').lock({ waitTime: 200 }), 200],
      [registry.obtain('b').tryLock(), 400],
      [registry.obtain('c').lock(), 700],
      [registry.obtain('c').lock({ waitTime: 300 }), 300],
    ].map(async ([call, limit]) => {
      await expect(call).rejects.toMatchObject(failure);
      const took = performance.now() - startedAt;
      expect(took).toBeGreaterThan((limit as number) - 100);
      expect(took).toBeLessThan((limit as number) + 200 + machineDelay());
    });
    const stop = new AbortController();
    const leaving = registry.obtain('d').lock({ signal: stop.signal });
    const left = expect(leaving).rejects.toBe('aborted');
    await new Promise(setImmediate); // it is on its way
    stop.abort('aborted');
    expect(await elapsed(leaving)).toBeLessThan(50 + machineDelay());
    await Promise.all([left, ...settling]);
  });

  it('P6: for less than the ttl: no lease is lost', async () => {
    const ttl = 3 * TTL;
    const lease = await locks.registry.obtain('key').lock({ ttl, renew: true });
    redis.freeze();
    await until(() => lease.remaining < ttl / 3);
    redis.thaw();
    await until(() => lease.remaining > ttl / 2);
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
    // A renewal is late by about a third of the ttl, which may or may not be warned of.
    expect(locks.warnings.filter(({ code }) => code !== 'REDIS_SILENT')).toEqual([]);
  });
});
