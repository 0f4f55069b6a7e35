import { expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistryOptions } from '../../lib';
import { NotLockOwnerError } from '../../lib';
import { describePrivate } from '../support/private-redis';
import { RedisFixture } from './redis-fixture';

const CALLERS = 100;
const ROUNDS = 5;

describePrivate.each(['spin', 'pub-sub'] as const)('A %s lock with contending callers of one process', (lockType) => {
  const fixture = RedisFixture.install();

  const openRegistry = async (options: Partial<RedisLockRegistryOptions> = {}) => {
    const { registry } = await fixture.process({ lockType, idleBetweenTries: 100, ...options });
    // Loads the scripts into the server.
    await Promise.all([1, 2].map(() => registry.run('warm up', () => undefined)));
    return registry;
  };

  it.each<[string, Partial<RedisLockRegistryOptions>, number, number]>([
    ['handed over', {}, 1.0, 1.1],
    ['released and acquired, with handOver: 0', { handOver: 0 }, 2.0, 2.1],
  ])('is %s: with this number of requests for each acquisition, in FIFO order', async (_, options, least, most) => {
    const registry = await openRegistry({ ...options, fencing: true });
    const before = await fixture.requests();
    const [order, tokens] = [[] as number[], [] as number[]];
    await Promise.all(
      Array.from({ length: CALLERS }, async (_, caller) => {
        for (let round = 0; round < ROUNDS; round++) {
          await registry.run('key', ({ fencingToken }) => {
            order.push(caller);
            tokens.push(fencingToken as number);
          });
        }
      }),
    );
    const sent = (await fixture.requests()) - before;
    expect(sent / (CALLERS * ROUNDS)).toBeGreaterThanOrEqual(least);
    expect(sent / (CALLERS * ROUNDS)).toBeLessThanOrEqual(most);
    // A caller that released and locks again is at the end of the queue.
    expect(order).toEqual(Array.from({ length: CALLERS * ROUNDS }, (_, turn) => turn % CALLERS));
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(await fixture.isHeld('key')).toBe(false);
  });

  it('gives each holder its own signal, deadline and token', async () => {
    // A slice of `spin` is four intervals: it is not over on a machine that stands still.
    const registry = await openRegistry({ fencing: true, idleBetweenTries: 5_000 });
    const { lock } = fixture.namesOf('key');
    const ttls = [60_000, 5_000, 90_000.5, 1_000, 30_000, 30_000];
    const [owners, leases] = [[] as (string | null)[], [] as Lease[]];
    await Promise.all(
      ttls.map((ttl) =>
        registry.run(
          'key',
          async (lease) => {
            owners.push(await fixture.admin.get(lock));
            const life = await fixture.admin.pTTL(lock);
            // The ttl of this call, not that of the holder before: the key lives for that time at least.
            expect(life).toBeGreaterThan(ttl - 900);
            expect(lease.remaining).toBeLessThanOrEqual(Math.min(life, Math.ceil(ttl)));
            expect(lease.remaining).toBeGreaterThan(ttl - 900);
            for (const former of leases) {
              expect(former.remaining).toBe(0);
              expect(() => former.assertHeld()).toThrow(NotLockOwnerError);
              await expect(former.renew()).rejects.toThrow(NotLockOwnerError);
              await former.unlock(); // does nothing
            }
            leases.push(lease);
            lease.assertHeld();
          },
          { ttl },
        ),
      ),
    );
    // One hold, as long as its slice lasts.
    expect(new Set(owners).size).toBe(1);
    expect(new Set(leases.map(({ signal }) => signal)).size).toBe(ttls.length);
    expect(leases.filter(({ signal }) => signal.aborted)).toEqual([]);
    const tokens = leases.map(({ fencingToken }) => fencingToken as number);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(await fixture.isHeld('key')).toBe(false);
  });
});
