import { Timer } from '../internal/clock';

/** The caller that a step suspends. */
export interface Suspended {
  /** The step in which the caller is suspended. */
  step: { fail(error: unknown): void } | undefined;
}

/**
 * One suspension of a caller, with a promise. It ends once: by its result, by a failure, or with `undefined` after
 * `ms`.
 */
export abstract class Step<T> {
  readonly #suspended: Suspended;
  readonly #resolve: (value: T | undefined) => void;
  readonly #reject: (error: unknown) => void;
  readonly #timer: Timer | undefined;
  #isOver = false;

  constructor(
    suspended: Suspended,
    ms: number,
    resolve: (value: T | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    this.#suspended = suspended;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = ms === Number.POSITIVE_INFINITY ? undefined : new Timer(ms, () => this.resume(undefined));
    suspended.step = this;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  resume(value: T | undefined): void {
    if (this.#end()) this.#resolve(value);
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  /** Undoes what the step began. Called once, at its end. */
  protected abstract undo(): void;

  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#suspended.step = undefined;
    this.undo();
    return true;
  }
}

/** A step that a function begins, which may return what undoes it. */
export class StartedStep<T> extends Step<T> {
  #undo: (() => void) | undefined;

  start(start: (resume: (value: T) => void, fail: (error: unknown) => void) => (() => void) | undefined): void {
    this.#undo = start(
      (value) => this.resume(value),
      (error) => this.fail(error),
    );
    // It may have called back at once, before there was anything to undo.
    if (this.isOver) this.#undo?.();
  }

  protected undo(): void {
    this.#undo?.();
  }
}
