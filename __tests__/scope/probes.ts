import { expect } from '@jest/globals';
import type { DistributedLock, Lease, LockLostReason } from '../../lib';
import type { LockFixture } from '../contract/lock-fixture';
import type { Oracle } from '../support/oracle';

/** Whether the lock is refused: one attempt, which is released if it succeeds. */
export async function isExcluded(lock: DistributedLock): Promise<boolean> {
  const lease = await lock.tryLock();
  await lease?.unlock();
  return lease === null;
}

/** Deletes the key of a lease, and lets the lease detect it. */
export async function lose(fixture: LockFixture, lease: Lease): Promise<void> {
  await fixture.admin.del(fixture.nameOf(lease.key));
  await expectLost(lease.renew(), 'expired');
}

/** Lets another process acquire the key of a lease, and lets the lease detect it. Returns the new lease. */
export async function steal(fixture: LockFixture, lease: Lease): Promise<Lease> {
  await fixture.admin.del(fixture.nameOf(lease.key));
  const theirs = await fixture.otherRegistry().obtain(lease.key).lock({ ttl: 60_000 });
  await expectLost(lease.renew(), 'stolen');
  return theirs;
}

export async function expectLost(outcome: Promise<unknown>, reason: LockLostReason): Promise<void> {
  await expect(outcome).rejects.toMatchObject({ name: 'LockLostError', code: 'ERR_LOCK_LOST', reason });
}

/** A promise that the test resolves, in place of a sleep. */
export class Gate {
  readonly opened: Promise<void>;
  open: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

/** Sections that must not overlap, checked by an oracle, in the order of entry. */
export class Sections {
  readonly entered: string[] = [];
  readonly #oracle: Oracle;

  constructor(oracle: Oracle) {
    this.#oracle = oracle;
  }

  get violations(): readonly string[] {
    return this.#oracle.violations;
  }

  async enter<T>(name: string, body?: () => T | PromiseLike<T>): Promise<T | undefined> {
    return this.#oracle.section(() => {
      this.entered.push(name);
      return body?.();
    });
  }
}
