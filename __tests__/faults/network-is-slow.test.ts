import { expect, it } from '@jest/globals';
import { connectTo, describePrivate } from '../support/private-redis';
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
});
