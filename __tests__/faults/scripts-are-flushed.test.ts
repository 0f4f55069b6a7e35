import { expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';

describePrivate('the scripts are flushed', () => {
  const redis = PrivateRedis.install();

  it.each(CLIENT_KINDS)('between all calls of %s: every call succeeds', async (kind) => {
    const { registry, nameOf, warnings } = createRegistry(await clientKinds[kind](redis.address), { fencing: true });
    let last = 0;
    for (let i = 0; i < 3; i++) {
      await redis.admin.scriptFlush();
      const lease = await registry.obtain('key').lock();
      expect(lease.fencingToken).toBeGreaterThan(last);
      last = lease.fencingToken as number;
      await redis.admin.scriptFlush();
      await lease.renew();
      await redis.admin.scriptFlush();
      expect(await registry.obtain('key').tryLock()).toBeNull();
      await lease.unlock();
      expect(await redis.admin.exists(nameOf('key'))).toBe(0);
    }
    expect(warnings).toEqual([]);
  });

  it('while many calls are in flight: every call succeeds', async () => {
    const { registry, warnings } = createRegistry(await redis.connect());
    const flushing = (async () => {
      for (let i = 0; i < 50; i++) await redis.admin.scriptFlush();
    })();
    await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const lease = await registry.obtain(`key-${i}`).lock();
        await lease.renew();
        await lease.unlock();
      }),
    );
    await flushing;
    expect(warnings).toEqual([]);
  });
});
