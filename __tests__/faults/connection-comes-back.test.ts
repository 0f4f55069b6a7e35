import { expect, it } from '@jest/globals';
import { DISTINCT_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms from the reconnect to the loss. */
const SOON = 1_000;

describePrivate.each(DISTINCT_TYPES)('The connection of a process with %s locks comes back', (lockType) => {
  it('P6: to a server that kept its data: each lease is confirmed, and none is shortened', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const client = await redis.connect();
    const { registry, nameOf } = createRegistry(client, { lockType, expireAfter: 60_000 });
    const renewed = await registry.obtain('renewed').lock();
    const fixed = await registry.obtain('fixed').lock({ ttl: 30_000 });
    const id = await client.clientId();
    const asked = async () => String((await admin.info('commandstats')).match(/cmdstat_evals?h?a?:calls=\d+/g));
    const before = await asked();
    await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(id)]);
    // One command asks about all of them.
    await until(async () => (await asked()) !== before, { within: SOON + 2_000 });
    await client.ping();
    expect(renewed.remaining).toBeGreaterThan(50_000);
    expect(fixed.remaining).toBeGreaterThan(20_000);
    expect(fixed.remaining).toBeLessThanOrEqual(30_000);
    expect(await admin.pTTL(nameOf('fixed'))).toBeLessThanOrEqual(30_000);
    for (const lease of [renewed, fixed]) {
      expect(lease.signal.aborted).toBe(false);
      await lease.unlock();
    }
  });
});
