import { expect, it } from '@jest/globals';
import { connectTo, describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FaultFixture } from './fault-fixture';

describePrivate('the network is slow', () => {
  const fixture = FaultFixture.install(connectTo, { expireAfter: 3_000, commandTimeout: 2_000 });

  it('P3: the lease is shorter by the round trip', async () => {
    fixture.proxy.requests.delay = 100;
    fixture.proxy.replies.delay = 150;
    const lease = await fixture.registry.obtain('key').lock();
    expect(lease.remaining).toBeLessThanOrEqual(3_000 - 250);
    expect(lease.remaining).toBeGreaterThan(2_000);
    expect(await fixture.admin.pTTL(fixture.nameOf('key'))).toBeGreaterThan(lease.remaining);
    await lease.unlock();
  });

  it('P3: jitter and single bytes change nothing', async () => {
    fixture.proxy.requests.bytewise = true;
    fixture.proxy.replies.bytewise = true;
    let noisy = true;
    const noise = (async () => {
      while (noisy) {
        fixture.proxy.requests.delay = Math.random() * 20;
        fixture.proxy.replies.delay = Math.random() * 20;
        await new Promise(setImmediate);
      }
    })();
    for (let i = 0; i < 5; i++) {
      const lease = await fixture.registry.obtain('key').lock();
      await lease.renew();
      await lease.unlock();
    }
    noisy = false;
    await noise;
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(0);
    expect(fixture.warnings).toEqual([]);
  });

  it('P2: a request that arrives long after the time-out is undone', async () => {
    fixture.proxy.requests.hold = true;
    await expect(fixture.registry.obtain('key').lock({ ttl: 30_000, waitTime: 100 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(0);
    fixture.proxy.requests.hold = false;
    // A reply over the same connection comes after all held requests.
    await (await fixture.registry.obtain('other').lock()).unlock();
    await until(async () => (await fixture.admin.exists(fixture.nameOf('key'))) === 0);
  });

  it('P6: a slow renewal counts', async () => {
    const lease = await fixture.registry.obtain('key').lock();
    fixture.proxy.replies.delay = 300;
    await until(() => lease.remaining < 1_900);
    await until(() => lease.remaining > 2_000);
    expect(lease.remaining).toBeLessThanOrEqual(3_000 - 300);
    await lease.unlock();
  });
});
