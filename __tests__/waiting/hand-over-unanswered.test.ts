import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, LockWarning, RedisLock } from '../../lib';
import type { FaultyProxy } from '../../support/proxy';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
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
    // Loads the scripts into the server.
    await Promise.all([1, 2].map(() => process.registry.run('warm up', () => undefined)));
    lock = process.registry.obtain('key');
    holder = await lock.lock();
  });

  /** `unlock` reports no loss, the waiters get the lock one after the other, and no key is left. */
  const continues = async (unlocking: Promise<void>, waiters: readonly Promise<Lease>[]) => {
    const oracle = new Oracle(fixture.admin);
    oracle.write(holder.fencingToken);
    await unlocking;
    expect(holder.signal.aborted).toBe(false);
    const released = performance.now();
    for (const next of waiters) {
      const lease = await next;
      expect(performance.now() - released).toBeLessThan(SLACK + machineDelay());
      await oracle.section(() => oracle.write(lease.fencingToken));
      lease.assertHeld();
      await lease.unlock();
    }
    expect(oracle.violations).toEqual([]);
    await until(async () => !(await fixture.isHeld('key')));
    expect(warnings.filter(({ code }) => code !== 'RELEASE_UNCERTAIN')).toEqual([]);
  };

  const queue = () => [lock.lock(), lock.lock(), lock.lock({ ttl: 5_000 })];

  it.each(['loseReply', 'loseRequest'] as const)('is acquired by the next waiters: %s', async (lose) => {
    const waiters = queue();
    const lost = proxy[lose](name());
    const unlocking = holder.unlock();
    await lost;
    await continues(unlocking, waiters);
  });

  it('in time is acquired by the next waiters, and the late reply has no effect', async () => {
    const waiters = queue();
    const before = await fixture.calls('evalsha');
    proxy.replies.hold = true;
    const unlocking = holder.unlock();
    // The hand-over, and then the release that replaces it.
    await until(async () => (await fixture.calls('evalsha')) === before + 2);
    proxy.replies.hold = false;
    await continues(unlocking, waiters);
  });

  it('in time, because its request is late, is acquired by the next waiters, and the late request has no effect', async () => {
    const waiters = queue();
    const sent = proxy.requests.bytes;
    proxy.requests.hold = true;
    const unlocking = holder.unlock();
    await until(() => proxy.requests.bytes > sent);
    const handedOver = proxy.requests.bytes;
    await until(() => proxy.requests.bytes > handedOver);
    proxy.requests.hold = false;
    await continues(unlocking, waiters);
  });

  it('at all rejects `unlock`, and does not grant the lock twice', async () => {
    const waiters = queue();
    proxy.blackHole = true;
    await expect(holder.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
    expect(holder.signal.aborted).toBe(false);
    proxy.blackHole = false;
    proxy.reset();
    await continues(Promise.resolve(), waiters);
  });
});
