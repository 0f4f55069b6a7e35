import { expect } from '@jest/globals';
import type { DistributedLock, Lease, LockLostReason, RedisLock } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { LockFixture } from '../../contract/lock-fixture';
import { redis6Client } from '../../support/client-kinds';
import type { Oracle } from '../../support/oracle';
import { spyOn } from '../../support/spied-client';

/** A scope knows nothing of lock types. These have little in common: what they write, how they wait, and their order. */
export const SCOPE_TYPES = ['spin', 'redisson-fair'] as const;

/** For each test, one lock of two processes. At the end no two sections have overlapped, and the lock is free. */
export class ScopeFixture extends LockFixture {
  mine!: BackedLockRegistry;
  lock!: RedisLock;
  theirs!: RedisLock;
  /** The sections that were entered, in order. */
  entered: string[] = [];
  #oracle!: Oracle;

  /** Registers the hooks of the surrounding `describe`. */
  static install(lockType: LockType): ScopeFixture {
    return new ScopeFixture(lockType, redis6Client).installed();
  }

  override beginTest(): void {
    super.beginTest();
    this.mine = this.registry();
    this.lock = this.mine.obtain('key');
    this.theirs = this.otherRegistry().obtain('key');
    this.entered = [];
    this.#oracle = this.oracle();
  }

  override async endTest(): Promise<void> {
    try {
      expect(this.#oracle.violations).toEqual([]);
      expect(await this.isInRedis('key')).toBe(false);
    } finally {
      await super.endTest();
    }
  }

  /** A section that must not overlap with another one. */
  async enter<T>(name: string, body?: () => T | PromiseLike<T>): Promise<T | undefined> {
    return this.#oracle.section(() => {
      this.entered.push(name);
      return body?.();
    });
  }

  /** The same lock, of a registry whose commands are counted. */
  spied(options: Parameters<LockFixture['registry']>[0] = {}) {
    const spy = spyOn(this.clients[0]);
    const registry = this.registryOn(spy, options);
    return { spy, registry, lock: registry.obtain('key') };
  }

  /** Deletes the key of a lease, and lets the lease detect it. */
  async lose(lease: Lease): Promise<void> {
    await this.admin.del(this.nameOf(lease.key));
    await expectLost(lease.renew(), 'expired');
  }

  async expectStillHeld(lease: Lease): Promise<void> {
    lease.assertHeld();
    expect(await this.isInRedis(lease.key)).toBe(true);
  }
}

/** Whether the lock is refused: one attempt, which is released if it succeeds. */
export async function isExcluded(lock: DistributedLock): Promise<boolean> {
  const lease = await lock.tryLock();
  await lease?.unlock();
  return lease === null;
}

export async function expectLost(outcome: Promise<unknown>, reason: LockLostReason): Promise<void> {
  await expect(outcome).rejects.toMatchObject({ name: 'LockLostError', code: 'ERR_LOCK_LOST', reason });
}

/** A promise that the test resolves, in place of a sleep. */
export class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}
