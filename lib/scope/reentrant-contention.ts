import type { Use } from '../acquire/contender';
import { LocalContention } from '../acquire/local-contention';
import type { Wait } from '../acquire/wait';
import { acquireChannel, isTraced, lockMessage, traceAcquire } from '../diagnostics/channels';
import type { LockMessage } from '../diagnostics/messages';
import type { HeldLease } from '../lease/unlock-order';
import type { LockRequest } from '../settings';
import { Scope } from './scope';

/**
 * The callers of one lock. One inside a scope of the lock enters again on the lease of that scope, all others contend
 * for the lock.
 */
export abstract class ReentrantContention extends LocalContention {
  /** @internal Runs under it, also those that lost their lease. */
  runs = 0;
  /** @internal Held, waited for, or the lock of a `run` that has not ended. */
  override get isInUse(): boolean {
    return this.runs > 0 || super.isInUse;
  }

  /** @internal As ScopedLock: this one, but for a reader inside its own write scope. */
  get scopeLock(): object {
    return this;
  }

  /** @internal Throws for a caller that would wait for itself. */
  protected assertMayEnter(): void {}

  /** @internal What messages say of this lock. */
  protected get labels(): LockMessage {
    return lockMessage(this.services.settings, this.key);
  }

  /**
   * @internal Re-entry or acquisition. `use` makes the result of the call from the lease; it gets `null` where another
   * holder had the lock until the wait was over.
   */
  protected enter<T>(request: LockRequest, wait: Wait, isRun: boolean, use: Use<T>): Promise<T> {
    wait.scope = Scope.current();
    const scope = wait.scope === undefined ? undefined : Scope.holding(this.scopeLock);
    if (scope === undefined && wait.scope !== undefined) this.assertMayEnter();
    if (isTraced(acquireChannel)) return this.tracedEnter(scope, request, wait, isRun).then(use);
    return scope === undefined ? this.acquire(request, wait, use) : this.reenter(scope, request, wait, isRun).then(use);
  }

  /** A method of its own: what a closure refers to would be allocated for callers without a subscriber too. */
  private tracedEnter(
    scope: Scope | undefined,
    request: LockRequest,
    wait: Wait,
    isRun: boolean,
  ): Promise<HeldLease | null> {
    const enter = (): Promise<HeldLease | null> =>
      scope === undefined ? this.acquire(request, wait, itself) : this.reenter(scope, request, wait, isRun);
    return traceAcquire(this.labels, wait, request.waitTime, scope !== undefined, enter);
  }

  private async reenter(around: Scope, request: LockRequest, wait: Wait, isRun: boolean): Promise<HeldLease | null> {
    const { longWaits } = this.services.waits;
    longWaits.beginReentry(wait);
    try {
      for (let scope: Scope | undefined = around; scope !== undefined; scope = Scope.holding(this.scopeLock)) {
        const entry = await scope.reenter(request, wait, isRun);
        if (entry.outcome === 'entered') return entry.lease;
        if (entry.outcome === 'timed out') return null;
      }
      longWaits.endReentry(wait);
      return await this.acquire(request, wait, itself);
    } finally {
      longWaits.endReentry(wait);
      wait.end();
    }
  }
}

function itself(lease: HeldLease | null): HeldLease | null {
  return lease;
}
