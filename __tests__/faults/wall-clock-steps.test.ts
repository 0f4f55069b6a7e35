import { afterEach, expect, it } from '@jest/globals';
import { clock } from '../../lib/internal/clock';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf } from '../support/test-registry';
import { until } from '../support/until';

const HOUR = 3_600_000;
const real = clock.wallNow;

/** The wall clock advances and the monotonic clock does not, as during a suspend of the machine. */
function suspend(ms: number): void {
  const before = clock.wallNow;
  clock.wallNow = () => before() + ms;
}

describePrivate('the wall clock steps', () => {
  const redis = PrivateRedis.install();

  afterEach(() => {
    clock.wallNow = real;
  });

  it('P12: forwards: a lease is unconfirmed until Redis confirms it, which is requested at once', async () => {
    const { registry } = createRegistry(await redis.connect());
    const renewed = await registry.obtain('renewed').lock();
    const fixed = await registry.obtain('fixed').lock({ ttl: 30_000 });
    suspend(HOUR);
    for (const lease of [renewed, fixed]) {
      expect(lease.remaining).toBe(0);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'unconfirmed' }));
      expect(lease.signal.aborted).toBe(false);
    }
    await until(() => renewed.remaining > 0 && fixed.remaining > 0);
    fixed.assertHeld();
    expect(fixed.remaining).toBeLessThanOrEqual(30_000);
    await renewed.unlock();
    await fixed.unlock();
  });

  it('P12: forwards: a lease that expired meanwhile is lost, although the monotonic clock has time left', async () => {
    const { registry, nameOf } = createRegistry(await redis.connect());
    const lease = await registry.obtain('key').lock();
    await redis.admin.del(nameOf('key')); // as its ttl would have done
    suspend(HOUR);
    expect(lease.remaining).toBe(0);
    expect((await lossOf(lease)).reason).toBe('expired');
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
  });

  it('P3 P12: while the reply of an acquisition is in flight: no lease that counts as held', async () => {
    const proxy = await redis.proxy();
    const { registry, nameOf } = createRegistry(await connectTo(proxy.address));
    await (await registry.obtain('warm-up').lock()).unlock();
    proxy.replies.hold = true;
    const acquiring = registry.obtain('key').lock({ waitTime: 10_000 });
    await until(() => redis.admin.exists(nameOf('key')));
    await redis.admin.del(nameOf('key')); // as its ttl would have done
    suspend(HOUR);
    proxy.replies.hold = false;
    const lease = await acquiring;
    // The acquisition may repeat its attempt and then holds the lock; otherwise the lease is unconfirmed.
    expect(lease.remaining > 0).toBe((await redis.admin.exists(nameOf('key'))) === 1);
    await lease.unlock().catch(() => undefined);
  });
});
