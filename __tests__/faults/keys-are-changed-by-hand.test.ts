import { beforeEach, expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 1_800;
const NEXT_RENEWAL = TTL / 3 + 250;

describePrivate('keys are changed by hand', () => {
  const redis = PrivateRedis.install();
  let locks: TestRegistry;
  let name: string;

  beforeEach(async () => {
    locks = createRegistry(await redis.connect(), { expireAfter: TTL });
    name = locks.nameOf('key');
  });

  it('P6: EXPIRE: the next renewal restores a shorter ttl; a longer one is kept and does not extend the lease', async () => {
    const lease = await locks.registry.obtain('key').lock();
    await redis.admin.pExpire(name, TTL / 2);
    await until(async () => (await redis.admin.pTTL(name)) > TTL / 2, { within: NEXT_RENEWAL });
    await redis.admin.pExpire(name, 60_000);
    await until(() => lease.remaining > TTL);
    expect(await redis.admin.pTTL(name)).toBeGreaterThan(lease.remaining);
    await lease.unlock();
    expect(await redis.admin.exists(name)).toBe(0);
  });
});
