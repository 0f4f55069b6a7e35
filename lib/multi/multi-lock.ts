import { inspect } from 'node:util';
import { acquireChannel, holdChannel, isTraced, lockMessage, traceAcquire, traceHold } from '../api/diagnostics';
import type { DistributedLock, LockOptions, LockState, MultiLease, TryRunResult } from '../api/distributed-lock';
import { notHeld } from '../api/errors';
import type { LockMessage } from '../api/messages';
import type { InternalLease } from '../core/internal-lease';
import { lockText, type RedisLock } from '../core/lock';
import { assertReplaceable, lockRequest } from '../core/request';
import { runUnder, Scope } from '../core/scope';
import { UnlockOrder } from '../core/unlock-order';
import { callback, expected, nonEmptyString, strings } from '../internal/validation';
import { MultiAcquisition } from './multi-acquisition';
import { MultiKeyLease } from './multi-lease';

/** More keys would hold up a Redis for too long in one script. */
const MOST_KEYS = 1_000;

/** The keys in the order in which every process takes them, each of them once. */
export function multiKeys(keys: readonly string[]): readonly string[] {
  const unique = [...new Set(strings('keys', keys, nonEmptyString))];
  if (unique.length === 0 || unique.length > MOST_KEYS) {
    throw new RangeError(expected('keys', `1 to ${MOST_KEYS} keys`, `${unique.length} keys`));
  }
  // By code units: the order of a locale could differ between processes.
  return unique.sort();
}

/**
 * The locks of several keys, taken all or nothing. Made by `RedisLockRegistry.multi`. Everybody else sees the locks of
 * its keys: `registry.obtain(key)` excludes it, and is excluded by it.
 */
export class MultiLock implements DistributedLock {
  /** Each of them once, in the order in which they are taken. */
  readonly keys: readonly string[];
  /** All of them, for messages. */
  readonly key: string;
  readonly #parts: readonly RedisLock[];
  readonly #unlockOrder = new UnlockOrder();

  /** @internal `parts` in the order that all processes share. */
  constructor(parts: readonly RedisLock[]) {
    this.#parts = parts;
    this.keys = parts.map(({ key }) => key);
    this.key = this.keys.join(' + ');
  }

  /** Whether this process holds all of them, as far as it knows. */
  get isAcquiredInThisProcess(): boolean {
    return this.#parts.every((part) => part.isAcquiredInThisProcess);
  }

  async lock(options?: LockOptions): Promise<MultiLease> {
    return this.#noted(await this.#acquire(options, false));
  }

  async tryLock(options?: LockOptions): Promise<MultiLease | null> {
    const lease = await this.#acquired(this.#acquisition(options, 0, false));
    return lease && this.#noted(lease);
  }

  async run<T>(task: (lease: MultiLease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    callback('task', task);
    return this.#runUnder(await this.#acquire(options, true), task);
  }

  async tryRun<T>(task: (lease: MultiLease) => T | PromiseLike<T>, options?: LockOptions): Promise<TryRunResult<T>> {
    callback('task', task);
    const lease = await this.#acquired(this.#acquisition(options, 0, true));
    return lease === null ? { ran: false } : { ran: true, value: await this.#runUnder(lease, task) };
  }

  #runUnder<T>(lease: MultiKeyLease, task: (lease: MultiLease) => T | PromiseLike<T>): Promise<T> {
    const sections = this.#parts.map((part, index) => ({
      lock: part.cached(),
      lease: lease.leases[index] as InternalLease,
    }));
    return runUnder(lease, sections, task, isTraced(holdChannel) ? this.#labels : undefined);
  }

  async unlock(): Promise<void> {
    const order = Scope.unlockOrderFor(this) ?? this.#unlockOrder;
    if (!(await order.unlockNext())) throw notHeld(this.key, 'here through lock() or tryLock()');
  }

  /** The state of the first key that somebody holds, else that of the first key. */
  async inspect(): Promise<LockState> {
    return firstHeld(await Promise.all(this.#parts.map((part) => part.inspect())));
  }

  /** Asks the holders of all keys. Resolves to whether one of them heard it. */
  async ask(why?: string): Promise<boolean> {
    return (await Promise.all(this.#parts.map((part) => part.ask(why)))).includes(true);
  }

  /** Unlocks every key by force, from any holder. Resolves to what `inspect` would have said before. */
  async forceUnlock(): Promise<LockState> {
    return firstHeld(await Promise.all(this.#parts.map((part) => part.forceUnlock())));
  }

  async #acquire(options: LockOptions | undefined, isRun: boolean): Promise<MultiKeyLease> {
    const acquisition = this.#acquisition(options, Number.POSITIVE_INFINITY, isRun);
    const lease = await this.#acquired(acquisition);
    if (lease === null) return (acquisition.refusing ?? this.#first).timedOut(acquisition.request);
    return lease;
  }

  #acquisition(options: LockOptions | undefined, defaultWaitTime: number, isRun: boolean): MultiAcquisition {
    const request = lockRequest(options, this.#first, defaultWaitTime);
    if (request.grace !== undefined) assertReplaceable('multi');
    if (request.signal?.aborted) throw request.signal.reason;
    return new MultiAcquisition(this.key, this.#parts, request, isRun);
  }

  /** `null`: one of the locks was not free in time. */
  #acquired(acquisition: MultiAcquisition): Promise<MultiKeyLease | null> {
    const acquire = async (): Promise<MultiKeyLease | null> => {
      const leases = await acquisition.acquire();
      return leases && new MultiKeyLease(this.key, leases);
    };
    if (!isTraced(acquireChannel)) return acquire();
    const isReentry = this.#parts.every((part) => Scope.holding(part.cached()) !== undefined);
    return traceAcquire(this.#labels, acquisition.wait, acquisition.request.waitTime, isReentry, acquire);
  }

  #noted(lease: MultiKeyLease): MultiKeyLease {
    if (isTraced(holdChannel) && !lease.isReentry) {
      traceHold(this.#labels, lease);
      // The section of the lease also ends by a loss, which it listens for from the first read on.
      void lease.signal;
    }
    (Scope.current()?.unlockOrderOf(this) ?? this.#unlockOrder).add(lease);
    return lease;
  }

  /** What `console.log(lock)` prints: no internals. */
  [inspect.custom](): string {
    return lockText('MultiLock', this);
  }

  get #first(): RedisLock {
    return this.#parts[0] as RedisLock;
  }

  get #labels(): LockMessage {
    return lockMessage(this.#first.services.settings, this.key);
  }
}

function firstHeld(states: readonly LockState[]): LockState {
  return states.find(({ held }) => held) ?? (states[0] as LockState);
}
