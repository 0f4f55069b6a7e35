import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf } from '../support/test-registry';

const HOUR = 3_600_000;

// Seen from a script, a server whose clock went back is one whose last token lies in the future; and one whose clock
// went on is one where keys end early.
describePrivate('the clock of the server steps', () => {
  it('P10: back by an hour: tokens still rise, one by one', async () => {
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

  it('P10: the counter is lost: the time takes over, and tokens still rise', async () => {
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

  it('P4 P6: on: the lease ends early, and its holder is told by the next renewal', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const { registry, nameOf } = createRegistry(await redis.connect(), { expireAfter: 900 });
    const lease = await registry.obtain('key').lock();
    await admin.pExpireAt(nameOf('key'), Date.now() - 1);
    expect((await lossOf(lease)).reason).toBe('expired');
  });
});
