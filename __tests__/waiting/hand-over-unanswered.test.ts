import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, LockWarning, RedisLock } from '../../lib';
import { SLACK } from '../contract/timing';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate.each(['spin', 'pub-sub'] as const)('A %s lock whose hand-over is not answered', (lockType) => {
  const fixture = RedisFixture.install();
  let proxy: FaultyProxy;
  let lock: RedisLock;
  let warnings: LockWarning[];
  let holder: Lease;

  const name = () => fixture.namesOf('key').lock;

  beforeEach(async () => {
    const { proxy: made, client } = await fixture.proxied();
    proxy = made;
    const process = fixture.registry(client, { lockType, idleBetweenTries: 20, commandTimeout: 400, fencing: true });
    warnings = process.warnings;
    // From now on the server knows the scripts.
    await Promise.all([1, 2].map(() => process.registry.run('warm up', () => undefined)));
    lock = process.registry.obtain('key');
    holder = await lock.lock();
  });

  /** The one who unlocks is told of no loss, those behind it get the lock one after the other, and no key is left. */
  const goesOn = async (unlocking: Promise<void>, behind: readonly Promise<Lease>[]) => {
    const oracle = new Oracle(fixture.admin);
    oracle.write(holder.fencingToken);
    await unlocking;
    expect(holder.signal.aborted).toBe(false);
    const released = performance.now();
    for (const next of behind) {
      const lease = await next;
      expect(performance.now() - released).toBeLessThan(SLACK);
      await oracle.section(() => oracle.write(lease.fencingToken));
      lease.assertHeld();
      await lease.unlock();
    }
    expect(oracle.violations).toEqual([]);
    await until(async () => !(await fixture.isHeld('key')));
    expect(warnings.filter(({ code }) => code !== 'RELEASE_UNCERTAIN')).toEqual([]);
  };

  const queue = () => [lock.lock(), lock.lock(), lock.lock({ ttl: 5_000 })];

  it('since its reply is lost with the connection: goes on', async () => {
    const behind = queue();
    const lost = proxy.loseReply(name());
    const unlocking = holder.unlock();
    await lost;
    await goesOn(unlocking, behind);
  });

  it('since it is lost before the server read it: goes on', async () => {
    const behind = queue();
    const lost = proxy.loseRequest(name());
    const unlocking = holder.unlock();
    await lost;
    await goesOn(unlocking, behind);
  });

  it('in time: goes on, and what arrives later does no harm', async () => {
    const behind = queue();
    const before = await fixture.calls('evalsha');
    proxy.replies.hold = true;
    const unlocking = holder.unlock();
    // The hand-over, and then the release that takes its place.
    await until(async () => (await fixture.calls('evalsha')) === before + 2);
    proxy.replies.hold = false;
    await goesOn(unlocking, behind);
  });

  it('in time, since it has not arrived: goes on, and does no harm when it does', async () => {
    const behind = queue();
    const sent = proxy.requests.bytes;
    proxy.requests.hold = true;
    const unlocking = holder.unlock();
    await until(() => proxy.requests.bytes > sent);
    const handedOver = proxy.requests.bytes;
    await until(() => proxy.requests.bytes > handedOver);
    proxy.requests.hold = false;
    await goesOn(unlocking, behind);
  });

  it('at all: the one who unlocks is told that it is not known, and nobody gets it twice', async () => {
    const behind = queue();
    proxy.blackHole = true;
    await expect(holder.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
    expect(holder.signal.aborted).toBe(false);
    proxy.blackHole = false;
    proxy.reset();
    await goesOn(Promise.resolve(), behind);
  });
});
