import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';

/** So many are taken at a time: this is about leases that are held, not about a rush. */
const AT_ONCE = 250;

/** Takes many leases, and returns what counts the losses, and the requests, while they are held. */
async function take(many: number, ttl: number) {
  const redis = await PrivateRedis.start();
  const admin = await redis.connect();
  const { registry, warnings } = createRegistry(await redis.connect(), { expireAfter: ttl });
  const requests = async () => {
    const statistics = await admin.info('commandstats');
    return [...statistics.matchAll(/^cmdstat_(?:evalsha|eval):calls=(\d+)/gm)].reduce((n, [, c]) => n + Number(c), 0);
  };
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
      // What is asked at any moment is what counts, not only the end.
      for (const lease of leases) if (lease.remaining === 0) throw new Error(`"${lease.key}" was lost`);
    }
    const requestsPerSecond = ((await requests()) - before) / ((performance.now() - startedAt) / 1_000);
    const lost = leases.filter((lease) => lease.signal.aborted).length;
    await Promise.all(leases.map((lease) => lease.unlock()));
    expect(await admin.dbSize()).toBe(0);
    expect(warnings).toEqual([]);
    return { lost, requestsPerSecond };
  };
}

describePrivate('many leases are held', () => {
  it('P4 P6: 1,000 of 3 s for 20 s, and 10,000 of 30 s for longer than a renewal cycle: none is lost, few requests', async () => {
    const holdTenThousand = await take(10_000, 30_000);
    const holdThousand = await take(1_000, 3_000);
    const [thousand, tenThousand] = await Promise.all([holdThousand(20_000), holdTenThousand(20_000)]);
    expect(thousand.lost).toBe(0);
    expect(thousand.requestsPerSecond).toBeGreaterThan(1);
    expect(thousand.requestsPerSecond).toBeLessThan(100);
    expect(tenThousand.lost).toBe(0);
    expect(tenThousand.requestsPerSecond).toBeGreaterThan(1);
    expect(tenThousand.requestsPerSecond).toBeLessThan(25);
  }, 60_000);
});
