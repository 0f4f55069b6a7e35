import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { scriptsRun } from '../support/server-load';
import { createRegistry } from '../support/test-registry';

/** Acquisitions, or releases, at a time: this test is about held leases, not about a burst. */
const AT_ONCE = 250;

/** Acquires many leases, and returns a function that counts losses and requests while they are held. */
async function take(many: number, ttl: number) {
  const redis = await PrivateRedis.start();
  const admin = await redis.connect();
  const { registry, warnings } = createRegistry(await redis.connect(), { expireAfter: ttl });
  const requests = () => scriptsRun(admin);
  const leases: Lease[] = [];
  while (leases.length < many) {
    const group = Array.from({ length: AT_ONCE }, (_, i) => registry.obtain(`key-${leases.length + i}`).lock());
    leases.push(...(await Promise.all(group)));
  }
  return async (watchFor: number): Promise<{ lost: number; requestsPerSecond: number }> => {
    const before = await requests();
    const startedAt = performance.now();
    while (performance.now() - startedAt < watchFor) {
      await sleep(ttl / 10);
      // Each lease must be held at any time, not only at the end.
      for (const lease of leases) if (lease.remaining === 0) throw new Error(`"${lease.key}" was lost`);
    }
    const requestsPerSecond = ((await requests()) - before) / ((performance.now() - startedAt) / 1_000);
    const lost = leases.filter((lease) => lease.signal.aborted).length;
    for (let first = 0; first < many; first += AT_ONCE) {
      await Promise.all(leases.slice(first, first + AT_ONCE).map((lease) => lease.unlock()));
    }
    // By name: keys of the probe may have ended, and still be counted.
    expect(await admin.keys('*')).toEqual([]);
    expect(warnings).toEqual([]);
    return { lost, requestsPerSecond };
  };
}

describePrivate('many leases are held', () => {
  it('P4 P6: 1,000 with a ttl of 6 s for 20 s, and 10,000 with 30 s for more than a renewal cycle: none is lost, with few requests', async () => {
    const holdTenThousand = await take(10_000, 30_000);
    const holdThousand = await take(1_000, 6_000);
    const [thousand, tenThousand] = await Promise.all([holdThousand(20_000), holdTenThousand(20_000)]);
    expect(thousand.lost).toBe(0);
    expect(thousand.requestsPerSecond).toBeGreaterThan(1);
    expect(thousand.requestsPerSecond).toBeLessThan(100);
    expect(tenThousand.lost).toBe(0);
    expect(tenThousand.requestsPerSecond).toBeGreaterThan(1);
    expect(tenThousand.requestsPerSecond).toBeLessThan(25);
  });
});
