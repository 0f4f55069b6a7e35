import { expect } from '@jest/globals';
import type { DistributedLock, Lease, LockLostReason } from '../../lib';
import type { LockFixture } from '../contract/lock-fixture';

/** Whether somebody else has the lock: one attempt, which is undone where it succeeds. */
export async function isExcluded(lock: DistributedLock): Promise<boolean> {
  const lease = await lock.tryLock();
  await lease?.unlock();
  return lease === null;
}

/** Takes the key away behind the lease's back, and lets it notice. */
export async function lose(fixture: LockFixture, lease: Lease): Promise<void> {
  await fixture.admin.del(fixture.nameOf(lease.key));
  await expectLost(lease.renew(), 'expired');
}

/** Lets another process have the key behind the lease's back, and lets it notice. Returns the thief's lease. */
export async function steal(fixture: LockFixture, lease: Lease): Promise<Lease> {
  await fixture.admin.del(fixture.nameOf(lease.key));
  const theirs = await fixture.otherRegistry().obtain(lease.key).lock({ ttl: 60_000 });
  await expectLost(lease.renew(), 'stolen');
  return theirs;
}

export async function expectLost(outcome: Promise<unknown>, reason: LockLostReason): Promise<void> {
  await expect(outcome).rejects.toMatchObject({ name: 'LockLostError', code: 'ERR_LOCK_LOST', reason });
}

/** Blocks the whole process, so that no timer can run meanwhile: a long garbage collection, a debugger. */
export function freeze(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
