import { LEAST_TIME_TO_ANSWER } from '../acquire/wait';
import type { LockOptions } from '../distributed-lock';
import { CannotAcquireLockError, cannotAcquire } from '../errors';
import { clock, Timer, within } from '../internal/clock';
import type { HeldLease } from '../lease/unlock-order';
import type { LockRequest } from '../settings';
import type { MultiPart } from './multi-part';

const NO_ANSWER = 'Redis did not answer within the waitTime';

/** How an acquisition ended. `timed out`: another holder had `part` until the wait was over. */
type MultiResult =
  | { readonly outcome: 'granted'; readonly leases: readonly HeldLease[] }
  | { readonly outcome: 'timed out'; readonly part: MultiPart };

/**
 * One acquisition of several locks, all or nothing.
 *
 * It makes one attempt for each lock, all in one tick of the event loop, so that they go to Redis together. While a
 * lock is refused, it keeps the locks before that one, gives back those behind it, and waits for that one alone. All
 * processes have the same order, so a caller that waits for a lock holds none that comes later in the order: no two
 * callers wait for each other in a circle (ordered acquisition, after Havender, 1968).
 */
export class MultiAcquisition {
  readonly #key: string;
  readonly #parts: readonly MultiPart[];
  readonly #options: LockOptions | undefined;
  readonly #request: LockRequest;
  readonly #endsAt: number;
  /** By the index of the part; `undefined`: not held. */
  #leases: (HeldLease | undefined)[];

  /** `parts` in the order that all processes share, at least one; `defaultWaitTime` in ms. */
  constructor(key: string, parts: readonly MultiPart[], options: LockOptions | undefined, defaultWaitTime: number) {
    this.#key = key;
    this.#parts = parts;
    // What is given back on the way is free at once: the hold begins when all of them are held.
    this.#options = options === undefined ? undefined : { ...options, minHold: undefined };
    this.#request = (parts[0] as MultiPart).requested(options, defaultWaitTime);
    this.#endsAt = clock.now() + this.#request.waitTime;
    this.#leases = parts.map(() => undefined);
  }

  async acquire(): Promise<MultiResult> {
    try {
      const refusing = await this.#acquireAll();
      if (refusing === undefined) return { outcome: 'granted', leases: this.#leases as HeldLease[] };
      await this.#giveUp();
      return { outcome: 'timed out', part: refusing };
    } catch (error) {
      await this.#giveUp();
      throw error;
    }
  }

  /** The part that another holder had until the wait was over; `undefined`: all are held. */
  async #acquireAll(): Promise<MultiPart | undefined> {
    for (let hasWaited = false; ; hasWaited = true) {
      const failures = await this.#attemptMissing();
      const index = this.#leases.indexOf(undefined);
      if (index < 0) {
        if (!this.#request.renew) await this.#endRenewals(hasWaited);
        if (this.#request.minHold > 0) for (const lease of this.#leases) lease?.holdAtLeast(this.#request.minHold);
        return undefined;
      }
      const part = this.#parts[index] as MultiPart;
      if (this.#remaining > 0) await this.#releaseInTime(index + 1);
      if (this.#remaining === 0) {
        const failure = failures.get(index);
        if (failure !== undefined) throw failure;
        return part;
      }
      const lease = await part.acquirePart(this.#options, this.#remaining);
      if (lease === null) return part;
      this.#leases[index] = lease;
      // A lock may have been lost during the wait.
      this.#leases = this.#leases.map((held) => (held?.checkLost() ? undefined : held));
    }
  }

  /** ms of the wait that are left */
  get #remaining(): number {
    return Math.max(0, this.#endsAt - clock.now());
  }

  /**
   * One attempt for each lock that is not held. Failures of Redis are returned, by the index of the part: a wait for it
   * retries them. Throws any other error, such as an abort.
   */
  async #attemptMissing(): Promise<ReadonlyMap<number, unknown>> {
    const limit = new Limit(this.#key, this.#request.waitTime, this.#remaining, this.#options);
    const attempts = this.#leases.map(
      (held, index) => held ?? (this.#parts[index] as MultiPart).acquirePart(limit.options, 0),
    );
    const results = await Promise.allSettled(attempts);
    limit.end();
    this.#leases = results.map((result) => (result.status === 'fulfilled' ? (result.value ?? undefined) : undefined));
    const failures = new Map<number, unknown>();
    for (const [index, result] of results.entries()) {
      if (result.status === 'fulfilled') continue;
      if (!(result.reason instanceof CannotAcquireLockError)) throw result.reason;
      failures.set(index, result.reason);
    }
    return failures;
  }

  /** Fixed leases were renewed so far. Those that waited for others get their full ttl once more. */
  async #endRenewals(hasWaited: boolean): Promise<void> {
    if (hasWaited) await Promise.all(this.#leases.map((lease) => lease?.renew(this.#request.ttl)));
    for (const lease of this.#leases) lease?.endRenewal?.();
  }

  async #release(from: number): Promise<void> {
    const released = this.#leases.splice(from);
    this.#leases.push(...released.map(() => undefined));
    // In one tick of the event loop, so that the releases go to Redis together.
    await Promise.all(released.map((lease) => lease?.[Symbol.asyncDispose]()));
  }

  /** Throws if Redis does not confirm it within the wait: it goes on in the background. */
  async #releaseInTime(from: number): Promise<void> {
    let isConfirmed = false;
    const releasing = this.#release(from).then(() => {
      isConfirmed = true;
    });
    await within(Math.max(this.#remaining, LEAST_TIME_TO_ANSWER), this.#unlessAborted(releasing));
    this.#request.signal?.throwIfAborted();
    if (!isConfirmed) throw cannotAcquire(this.#key, NO_ANSWER, undefined);
  }

  /** Resolves with the promise, or earlier when the caller's signal aborts. */
  async #unlessAborted(promise: Promise<void>): Promise<void> {
    const { signal } = this.#request;
    if (signal === undefined) return promise;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        signal.removeEventListener('abort', end);
        resolve();
      };
      signal.addEventListener('abort', end);
      void promise.then(end);
      if (signal.aborted) end();
    });
  }

  /** Releases what is held. A release that Redis does not confirm at once goes on in the background. */
  async #giveUp(): Promise<void> {
    await within(LEAST_TIME_TO_ANSWER, this.#release(0));
  }
}

/** The options of a single attempt that may not take longer than the rest of the wait. */
class Limit {
  readonly options: LockOptions | undefined;
  readonly #timer: Timer | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #forward: (() => void) | undefined;

  /** `waitTime`, `remaining` in ms. Without a wait, and with one that has no end, only `commandTimeout` limits it. */
  constructor(key: string, waitTime: number, remaining: number, options: LockOptions | undefined) {
    this.options = options;
    if (waitTime === 0 || waitTime === Number.POSITIVE_INFINITY) return;
    const controller = new AbortController();
    const late = cannotAcquire(key, NO_ANSWER, undefined);
    this.#timer = new Timer(Math.max(remaining, LEAST_TIME_TO_ANSWER), () => controller.abort(late));
    this.#signal = options?.signal;
    this.#forward = () => controller.abort(this.#signal?.reason);
    if (this.#signal?.aborted) this.#forward();
    else this.#signal?.addEventListener('abort', this.#forward);
    this.options = { ...options, signal: controller.signal };
  }

  end(): void {
    this.#timer?.cancel();
    if (this.#forward !== undefined) this.#signal?.removeEventListener('abort', this.#forward);
  }
}
