import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry } from '../../support/proxied-registry';
import { until } from '../../support/until';

/** More than the first attempts that may be in flight. */
const keys = Array.from({ length: 1_500 }, (_, i) => `key-${i}`);

describePrivate.each(['spin', 'fair'] as const)('thousands of %s locks at once', (lockType) => {
  it('Thousands of locks at once are all acquired, though the connection is lost meanwhile, and leave nothing behind', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    // A busy machine needs some of that time for so many.
    const options = { lockType, unavailableAfter: 60_000, commandTimeout: 20_000 };
    const { registry, nameOf, commands } = await createProxiedRegistry(redis, options);
    const locking = Promise.all(keys.map((key) => registry.obtain(key).lock()));
    await until(async () => (await admin.dbSize()) > 100, { within: 60_000 });
    commands.reset();
    const leases = await locking;
    expect(new Set(leases).size).toBe(keys.length);
    expect(await admin.exists(keys.map(nameOf))).toBe(keys.length);
    await Promise.all(leases.map((lease) => lease.unlock()));
    expect(await admin.exists(keys.map(nameOf))).toBe(0);
  }, 120_000);
});
