import { clock, Timer } from './clock';
import type { Linked } from './linked-list';

/**
 * One caller's wait, from its call to its lease: the time it has, and what may interrupt it (its own signal, or the
 * registry's `close`). Whatever the caller waits for, in this process or in Redis, it waits for it through here.
 */
export class Wait implements Linked<Wait> {
  /** Among the waits that `close` interrupts. */
  previous: Wait | undefined;
  next: Wait | undefined;
  /** The lock that it is for. */
  readonly key: string;
  readonly startedAt = clock.now();
  readonly signal: AbortSignal | undefined;
  /** The caller does not wait: it makes one attempt. */
  readonly isSingleAttempt: boolean;
  readonly #endsAt: number;
  #interruption: { readonly reason: unknown } | undefined;
  #interruptStep: ((reason: unknown) => void) | undefined;

  constructor(key: string, waitTime: number, signal: AbortSignal | undefined) {
    this.key = key;
    this.isSingleAttempt = waitTime === 0;
    this.#endsAt = this.startedAt + waitTime;
    this.signal = signal;
    if (signal !== undefined) listen(signal, this);
  }

  /** ms; 0 when the time is over. */
  get remaining(): number {
    if (this.#endsAt === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#endsAt - clock.now());
  }

  /** Rejects what the caller waits for now, and whatever it would wait for next. */
  interrupt(reason: unknown): void {
    this.#interruption ??= { reason };
    this.#interruptStep?.(reason);
  }

  get isInterrupted(): boolean {
    return this.#interruption !== undefined;
  }

  /** Throws the reason when the wait was interrupted. */
  throwIfInterrupted(): void {
    if (this.#interruption !== undefined) throw this.#interruption.reason;
  }

  /** The caller has what it wanted, or gave up: nothing may interrupt it any more. */
  end(): void {
    if (this.signal !== undefined) unlisten(this.signal, this);
  }

  /**
   * Suspends the caller until `start`'s `resume` or `fail` is called, or `ms` are over (`undefined`), or it is
   * interrupted (rejects). `start` may return what is to be undone when the step is over, however it ended.
   */
  suspend<T>(
    ms: number,
    start: (resume: (value: T) => void, fail: (error: unknown) => void) => (() => void) | undefined,
  ): Promise<T | undefined> {
    return new Promise<T | undefined>((resolve, reject) => {
      this.throwIfInterrupted();
      let over = false;
      let undo: (() => void) | undefined;
      const finish = (settle: () => void): void => {
        if (over) return;
        over = true;
        timer.cancel();
        this.#interruptStep = undefined;
        undo?.();
        settle();
      };
      const timer = new Timer(ms, () => finish(() => resolve(undefined)));
      this.#interruptStep = (reason) => finish(() => reject(reason));
      undo = start(
        (value) => finish(() => resolve(value)),
        (error) => finish(() => reject(error)),
      );
      // `start` may have called back at once, before there was anything to undo.
      if (over) undo?.();
    });
  }

  async sleep(ms: number): Promise<void> {
    await this.suspend(Math.min(ms, this.remaining), () => undefined);
  }

  /** Settles as `promise` does, or rejects as soon as the caller's signal aborts; the promise is then left alone. */
  unlessAborted<T>(promise: Promise<T>): Promise<T> {
    // Without a signal nothing but `close` could interrupt, and the promise of a command settles soon by itself.
    if (this.signal === undefined) return promise;
    return this.suspend<T>(Number.POSITIVE_INFINITY, (resume, fail) => {
      promise.then(resume, fail);
      return undefined;
    }) as Promise<T>;
  }
}

/** The waits of each signal, so that a signal that a thousand callers share bears one listener and not a thousand. */
const waitsOf = new WeakMap<AbortSignal, Set<Wait>>();

function interruptAll(this: AbortSignal): void {
  for (const wait of [...(waitsOf.get(this) ?? [])]) wait.interrupt(this.reason);
}

function listen(signal: AbortSignal, wait: Wait): void {
  const waits = waitsOf.get(signal) ?? new Set();
  waitsOf.set(signal, waits);
  if (waits.size === 0) signal.addEventListener('abort', interruptAll);
  waits.add(wait);
}

function unlisten(signal: AbortSignal, wait: Wait): void {
  const waits = waitsOf.get(signal);
  if (waits?.delete(wait) && waits.size === 0) signal.removeEventListener('abort', interruptAll);
}
