import type { DistributedLock, LockOptions, MultiLease, TryRunResult } from '../distributed-lock';
import { notHeld } from '../errors';
import { callback, expected, nonEmptyString } from '../internal/validation';
import { UnlockOrder } from '../lease/unlock-order';
import type { LockState } from '../lock-state';
import { runUnder } from '../scope/run-under';
import { Scope } from '../scope/scope';
import { MultiAcquisition } from './multi-acquisition';
import { HeldMultiLease } from './multi-lease';
import type { MultiPart } from './multi-part';

/** More keys would hold up a Redis for too long in one script. */
const MOST_KEYS = 1_000;

/** The keys in the order in which every process takes them, each of them once. */
export function multiKeys(keys: readonly string[]): readonly string[] {
  if (!Array.isArray(keys)) throw new TypeError(expected('keys', 'an array of strings', keys));
  const unique = [...new Set(keys.map((key, index) => nonEmptyString(`keys[${index}]`, key)))];
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
  readonly #parts: readonly MultiPart[];
  readonly #unlockOrder = new UnlockOrder();

  /** @internal `parts` in the order that all processes share. */
  constructor(parts: readonly MultiPart[]) {
    this.#parts = parts;
    this.keys = parts.map(({ key }) => key);
    this.key = this.keys.join(' + ');
  }

  /** Whether this process holds all of them, as far as it knows. */
  get isAcquiredInThisProcess(): boolean {
    return this.#parts.every((part) => part.isAcquiredInThisProcess);
  }

  async lock(options?: LockOptions): Promise<MultiLease> {
    return this.#noted(await this.#acquire(options));
  }

  async tryLock(options?: LockOptions): Promise<MultiLease | null> {
    const result = await this.#acquisition(options, 0).acquire();
    return result.outcome === 'granted' ? this.#noted(new HeldMultiLease(this.key, result.leases)) : null;
  }

  async run<T>(task: (lease: MultiLease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    callback('task', task);
    return this.#runUnder(await this.#acquire(options), task);
  }

  async tryRun<T>(task: (lease: MultiLease) => T | PromiseLike<T>, options?: LockOptions): Promise<TryRunResult<T>> {
    callback('task', task);
    const result = await this.#acquisition(options, 0).acquire();
    if (result.outcome !== 'granted') return { ran: false };
    return { ran: true, value: await this.#runUnder(new HeldMultiLease(this.key, result.leases), task) };
  }

  #runUnder<T>(lease: HeldMultiLease, task: (lease: MultiLease) => T | PromiseLike<T>): Promise<T> {
    const sections = this.#parts.map((part, index) => ({ lock: part.scopedLock(), lease: lease.leaseOf(index) }));
    return runUnder(lease, sections, task, undefined);
  }

  async unlock(): Promise<void> {
    const order = Scope.unlockOrderFor(this) ?? this.#unlockOrder;
    if (!(await order.unlockNext())) {
      throw notHeld(this.key, 'here through lock() or tryLock()');
    }
  }

  /** The state of the first key that somebody holds, else that of the first key. */
  async inspect(): Promise<LockState> {
    return firstHeld(await Promise.all(this.#parts.map((part) => part.inspect())));
  }

  /** Unlocks every key by force, from any holder. Resolves to what `inspect` would have said before. */
  async forceUnlock(): Promise<LockState> {
    return firstHeld(await Promise.all(this.#parts.map((part) => part.forceUnlock())));
  }

  async #acquire(options: LockOptions | undefined): Promise<HeldMultiLease> {
    const result = await this.#acquisition(options, Number.POSITIVE_INFINITY).acquire();
    if (result.outcome === 'granted') return new HeldMultiLease(this.key, result.leases);
    throw result.part.timeoutError(options);
  }

  #acquisition(options: LockOptions | undefined, defaultWaitTime: number): MultiAcquisition {
    return new MultiAcquisition(this.key, this.#parts, options, defaultWaitTime);
  }

  #noted(lease: HeldMultiLease): HeldMultiLease {
    (Scope.current()?.unlockOrderOf(this) ?? this.#unlockOrder).add(lease);
    return lease;
  }
}

function firstHeld(states: readonly LockState[]): LockState {
  return states.find(({ held }) => held) ?? (states[0] as LockState);
}
