import { expect, it } from '@jest/globals';
import type { Lease, LockLostError, RedisLockRegistry } from '../../../lib';
import { describeReal } from '../../support/redis';
import { ownerOf, SharedFixture } from './shared-fixture';

const INCREMENT = "return redis.call('INCR', KEYS[1])";

/** Two leases at a time of one lock, or a lease of a writer. */
const LOCKS = [
  ['semaphore', 'semaphore', (registry: RedisLockRegistry) => registry.semaphore('key', { permits: 2 }), 2],
  ['read lock', 'read', (registry: RedisLockRegistry) => registry.readWrite('key').read, 2],
  ['write lock', 'write', (registry: RedisLockRegistry) => registry.readWrite('key').write, 1],
] as const;

describeReal.each(LOCKS)('lease.eval of a %s', (_name, kind, lockOf, leases) => {
  const fixture = SharedFixture.install();

  async function taken(): Promise<{ lease: Lease; others: Lease[]; increment: (by: Lease) => Promise<unknown> }> {
    const registries = await Promise.all(Array.from({ length: leases }, () => fixture.registry()));
    const [lease, ...others] = await Promise.all(registries.map((registry) => lockOf(registry).lock()));
    const increment = (by: Lease) => by.eval(INCREMENT, { keys: [`${fixture.registryKey}:count`] });
    return { lease: lease as Lease, others, increment };
  }

  it('lease.eval of a shared lock runs while the lease is held, for each of its holders', async () => {
    const { lease, others, increment } = await taken();
    let count = 0;
    for (const by of [lease, ...others, lease]) expect(await increment(by)).toBe(++count);
  });

  it('lease.eval of a shared lock does nothing for a lease that is over by the clock of Redis, and leaves the others theirs', async () => {
    const { lease, others, increment } = await taken();
    await fixture.client.zAdd(`${fixture.registryKey}:key`, { score: 1, value: `${kind}:${ownerOf(lease)}` });
    await expect(increment(lease)).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
    expect(lease.signal.aborted).toBe(true);
    for (const [i, by] of others.entries()) expect(await increment(by)).toBe(i + 1);
    expect(await fixture.client.exists(`${fixture.registryKey}:count`)).toBe(others.length);
  });

  it('lease.eval of a shared lock does nothing when the lock was unlocked by force', async () => {
    const { lease, others, increment } = await taken();
    await lockOf(await fixture.registry()).forceUnlock();
    for (const by of [lease, ...others]) {
      const error = await increment(by).catch((reason: LockLostError) => reason);
      expect(error).toMatchObject({ name: 'LockLostError', reason: 'expired' });
    }
    expect(await fixture.client.exists(`${fixture.registryKey}:count`)).toBe(0);
  });
});
