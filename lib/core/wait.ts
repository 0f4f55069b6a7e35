import type { LockState } from '../api/distributed-lock';
import type { AcquireMessage } from '../api/messages';
import type { ReplicationSettings } from '../api/options';
import { clock, Timer } from '../internal/clock';
import type { Linked } from '../internal/linked-list';

/** ms; what a caller sends has at least this long to be answered, however little is left of its wait. */
export const LEAST_TIME_TO_ANSWER = 50;

/** ms that an attempt has at least. With `minReplicas` it has more: its WAIT follows an earlier one. */
export function leastTimeout({ minReplicas, replicaTimeout }: ReplicationSettings): number {
  return LEAST_TIME_TO_ANSWER + (minReplicas > 0 ? 2 * replicaTimeout : 0);
}

/** A lock with a queue in Redis, as far as its type has one there. */
export interface QueuedLock {
  readonly key: string;
  /** How many permits one owner may have of it. */
  readonly mostPermits: number;
  /** Whether Redis knows that a caller of another registry, with this id, waits for it. `timeout` in ms. Never rejects. */
  isAwaitedBy(id: string, timeout: number): Promise<boolean>;
}

/** The lock that callers wait for. */
export interface WaitedLock extends QueuedLock {
  inspect(): Promise<LockState>;
  /** ms for which this registry has held it; `undefined`: it does not, or it has several leases. */
  readonly heldFor: number | undefined;
  /** Who holds it, by the last answer that said so, and for how many ms unless it is renewed. */
  readonly lastHolder: { readonly owner: string; readonly remaining: number } | undefined;
  readonly names: { readonly lock: string };
}

/** What a caller holds while it waits. */
export interface ScopeOfWait {
  isInside(lockName: string): boolean;
  readonly heldKeys: readonly string[];
  readonly heldAlone: readonly QueuedLock[];
}

/**
 * One suspension of a caller, with a promise. It ends once: by its result, by a failure, or with `undefined` after
 * `ms`.
 */
export class Step<T> {
  /** Undoes what the step began. Called once, at its end. */
  undo: (() => void) | undefined;
  isOver = false;
  readonly #wait: Wait;
  readonly #resolve: (value: T | undefined) => void;
  readonly #reject: (error: unknown) => void;
  /** `undefined`: it has no end. A timer that never fires would be a tenth of the memory of a caller that waits. */
  readonly #timer: Timer | undefined;

  constructor(wait: Wait, ms: number, resolve: (value: T | undefined) => void, reject: (error: unknown) => void) {
    this.#wait = wait;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = ms === Number.POSITIVE_INFINITY ? undefined : new Timer(ms, () => this.resume(undefined));
    wait.step = this as Step<never>;
  }

  resume(value: T | undefined): void {
    if (this.#end()) this.#resolve(value);
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  #end(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#timer?.cancel();
    this.#wait.step = undefined;
    this.over();
    return true;
  }

  protected over(): void {
    this.undo?.();
  }
}

/** When the outer call was made that the present one is a part of: on the monotonic clock. */
let callAround: number | undefined;

/**
 * Makes a call that is a part of an outer one, with public options only. A silence of Redis is counted from the outer
 * call: else a call of several parts would wait for a silent Redis once for each of them.
 */
export function asPartOf<T>(whole: Pick<Wait, 'calledAt'>, call: () => T): T {
  const before = callAround;
  callAround = whole.calledAt;
  try {
    return call();
  } finally {
    callAround = before;
  }
}

/**
 * One caller's wait, from its call to its lease: how much of its waitTime is left, and what may interrupt it (its own
 * signal, or `close` of the registry). A caller of one lock waits through this object, in this process and in Redis. A
 * multi-key lock has one of its own, and one for each of its locks. When a waiter polls, and what notifies it, is in
 * `kinds/common/waiting`.
 */
export class Wait implements Linked<Wait> {
  /** Its neighbours in the list of the waits that `close` interrupts. */
  previous: Wait | undefined;
  next: Wait | undefined;
  /** The key of its lock. */
  readonly key: string;
  readonly startedAt = clock.now();
  /** When the caller called: for a lock of a multi-key lock, and for a segment, the call that it is a part of. */
  readonly calledAt: number;
  readonly signal: AbortSignal | undefined;
  /** The caller does not wait: it makes one attempt. */
  readonly isSingleAttempt: boolean;
  /** When a warning says again that it is long; `undefined`: none has said so. */
  reportAt: number | undefined;
  /** The caller has its result. */
  isOver = false;
  /** The caller waits for one of several keys, and holds others of them meanwhile. */
  holdsOthers: boolean;
  /** What it waits for. */
  lock: WaitedLock | undefined;
  /** The scope that the caller stands in. */
  scope: ScopeOfWait | undefined;
  /** What is published about it, or about the call that it is a part of, where somebody has subscribed. */
  trace: AcquireMessage | undefined;
  /** What suspends the caller now. */
  step: Step<never> | undefined;
  /** On the monotonic clock. */
  readonly endsAt: number;
  /** The end of the wait of the multi-key lock around this one, if that waits. */
  readonly endsAround: number;
  #interruption: { readonly reason: unknown } | undefined;

  /** `waitTime` in ms. `around`: that of a multi-key lock. */
  constructor(key: string, waitTime: number, signal: AbortSignal | undefined, around?: Wait) {
    this.key = key;
    this.calledAt = around?.startedAt ?? callAround ?? this.startedAt;
    this.trace = around?.trace;
    this.holdsOthers = around?.holdsOthers ?? false;
    this.isSingleAttempt = waitTime === 0;
    this.endsAt = this.startedAt + waitTime;
    this.endsAround = around === undefined || around.isSingleAttempt ? Number.POSITIVE_INFINITY : around.endsAt;
    this.signal = signal;
    if (signal !== undefined) listen(signal, this);
  }

  /** ms; 0 when the time is over. A wait without an end does not read the clock: that would slow down a hand-over. */
  get remaining(): number {
    return this.endsAt === Number.POSITIVE_INFINITY ? this.endsAt : Math.max(0, this.endsAt - clock.now());
  }

  /** Rejects the step in which the caller is suspended, and every later step. See `unlessAborted`. */
  interrupt(reason: unknown): void {
    this.#interruption ??= { reason };
    this.step?.fail(reason);
  }

  get isInterrupted(): boolean {
    return this.#interruption !== undefined;
  }

  /** Throws the reason of the interruption, if there was one. */
  throwIfInterrupted(): void {
    if (this.#interruption !== undefined) throw this.#interruption.reason;
  }

  /** The caller has its result: nothing may interrupt it any more. */
  end(): void {
    this.isOver = true;
    if (this.signal !== undefined) unlisten(this.signal, this);
  }

  /**
   * Suspends the caller until `resume` or `fail` is called, until `ms` are over (`undefined`), or until it is
   * interrupted (rejects). `start` may return what has to be undone at the end of the step, in any case.
   */
  suspend<T>(
    ms: number,
    start: (resume: (value: T) => void, fail: (error: unknown) => void) => (() => void) | undefined,
  ): Promise<T | undefined> {
    return new Promise<T | undefined>((resolve, reject) => {
      this.throwIfInterrupted();
      const step = new Step<T>(this, ms, resolve, reject);
      step.undo = start(
        (value) => step.resume(value),
        (error) => step.fail(error),
      );
      // The start may have called back at once, before there was anything to undo.
      if (step.isOver) step.undo?.();
    });
  }

  async sleep(ms: number): Promise<void> {
    await this.suspend(Math.min(ms, this.remaining), () => undefined);
  }

  /** Settles as `promise` does, or with `undefined` after `ms`, for a caller whose step others may end. */
  within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
    return this.suspend<T>(ms, (resume, fail) => void promise.then(resume, fail));
  }

  /**
   * Leaves a free lock to others for `ms`, but for no more than half of the time that is left: then there is time for
   * an attempt. `undefined`: not at all.
   */
  standBack(ms: number): Promise<void> | undefined {
    return ms > 0 ? this.sleep(Math.min(ms, this.remaining / 2)) : undefined;
  }

  /**
   * Settles as `promise` does. With a signal, and of a single attempt, it rejects as soon as the wait is interrupted. The
   * promise itself is not cancelled.
   */
  unlessAborted<T>(promise: Promise<T>): Promise<T> {
    // Else only `close` could interrupt, and the promise of a command settles soon by itself.
    return this.signal === undefined && !this.isSingleAttempt ? promise : this.unlessOver(promise);
  }

  /** Settles as `promise` does, for a caller whose step others may end. */
  unlessOver<T>(promise: Promise<T>): Promise<T> {
    return this.within(Number.POSITIVE_INFINITY, promise) as Promise<T>;
  }
}

/** What a signal may interrupt. */
type Interruptible = Pick<Wait, 'interrupt'>;

/** What a signal interrupts. A signal that a thousand callers share has one listener of ours and not a thousand. */
class Listening extends Set<Interruptible> {
  /** A signal of another realm, or of a polyfill, may call it with anything. */
  readonly interruptAll: () => void;

  constructor(signal: AbortSignal) {
    super();
    this.interruptAll = () => [...this].forEach((one) => void one.interrupt(signal.reason));
  }
}

const listeningTo = new WeakMap<AbortSignal, Listening>();

/** Interrupts it when the signal aborts, until `unlisten`. */
export function listen(signal: AbortSignal, one: Interruptible): void {
  const all = listeningTo.get(signal) ?? new Listening(signal);
  listeningTo.set(signal, all);
  if (all.size === 0) signal.addEventListener('abort', all.interruptAll);
  all.add(one);
}

export function unlisten(signal: AbortSignal, one: Interruptible): void {
  const all = listeningTo.get(signal);
  if (all?.delete(one) && all.size === 0) signal.removeEventListener('abort', all.interruptAll);
}
