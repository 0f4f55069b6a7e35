import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf } from '../support/test-registry';

const HOUR = 3_600_000;

// A script sees a clock that stepped back as a last token in the future, and a clock that stepped forward as keys that
// expire early.
describePrivate('the clock of the server steps', () => {
  it('P10: back by an hour: tokens still rise, by one', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const { registry, nameOf } = createRegistry(await redis.connect(), { fencing: true });
    const first = await registry.obtain('key').lock();
    await first.unlock();
    const fence = `{${nameOf('key')}}:fence`;
    const ahead = (first.fencingToken as number) + HOUR * 1_000;
    await admin.set(fence, String(ahead), { PX: HOUR });
    for (const token of [ahead + 1, ahead + 2]) {
      const lease = await registry.obtain('key').lock();
      expect(lease.fencingToken).toBe(token);
      await lease.unlock();
    }
    expect(await admin.get(fence)).toBe(String(ahead + 2));
    expect(await admin.pTTL(fence)).toBeGreaterThan(23 * HOUR);
  });

  it('P10: the counter is lost: tokens still rise, by the server time', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const { registry, nameOf } = createRegistry(await redis.connect(), { fencing: true });
    let last = 0;
    for (let i = 0; i < 20; i++) {
      const lease = await registry.obtain('key').lock();
      expect(lease.fencingToken).toBeGreaterThan(last);
      last = lease.fencingToken as number;
      await lease.unlock();
      await admin.del(`{${nameOf('key')}}:fence`);
    }
  });

  it('P4 P6: forward: the lease ends early, and the next renewal detects the loss', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const { registry, nameOf } = createRegistry(await redis.connect(), { expireAfter: 900 });
    const lease = await registry.obtain('key').lock();
    await admin.pExpireAt(nameOf('key'), Date.now() - 1);
    expect((await lossOf(lease)).reason).toBe('expired');
  });
});
