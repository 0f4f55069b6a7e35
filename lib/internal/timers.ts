import { clock, MAX_DELAY, Timer } from './clock';

/** One timer for many times: it fires at the earliest that was asked for. */
export class WakeTimer {
  readonly #onWake: () => void;
  readonly #keepsProcessAlive: boolean;
  #timer: NodeJS.Timeout | undefined;
  /** On the monotonic clock. */
  #at = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(onWake: () => void, keepsProcessAlive: boolean) {
    this.#onWake = onWake;
    this.#keepsProcessAlive = keepsProcessAlive;
  }

  /** Fires at this time at the latest, or earlier: after `MAX_DELAY`, or by an earlier call. `Infinity`: not for this. */
  by(time: number, now = clock.now()): void {
    if (this.#isClosed) return;
    if (this.#keepsProcessAlive) this.#timer?.ref?.();
    // A timer that is overdue may never fire: it was set on a clock that an application's tests have replaced since.
    const isOverdue = this.#at < now;
    if (time >= this.#at && !isOverdue) return;
    clock.clearTimeout(this.#timer);
    this.#at = isOverdue ? Math.min(time, now + 1) : time;
    this.#timer = clock.setTimeout(() => this.#fire(), Math.max(1, Math.min(Math.ceil(this.#at - now), MAX_DELAY)));
    if (!this.#keepsProcessAlive) this.#timer.unref?.();
  }

  /**
   * Nothing is to be done until the next call of `by`, which may come soon. Then this costs less than `cancel`: the timer
   * may fire for nothing, but does not keep the process alive.
   */
  rest(): void {
    this.#timer?.unref?.();
  }

  cancel(): void {
    clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#at = Number.POSITIVE_INFINITY;
  }

  /** It does not fire any more, and leaves no timer behind. */
  close(): void {
    this.cancel();
    this.#isClosed = true;
  }

  #fire(): void {
    this.cancel();
    this.#onWake();
  }
}

/** ms; calls that are due within this time are made together. */
export const TOGETHER = 20;

/**
 * One timer for many calls. Those that are due at about the same time are made together, so that what they send goes to
 * Redis together. Each with a timer of its own, it would go one by one.
 */
export class TimerForMany {
  readonly #due = new Map<() => void, number>();
  readonly #timer: WakeTimer;

  constructor(keepsProcessAlive = true) {
    this.#timer = new WakeTimer(() => this.#tick(), keepsProcessAlive);
  }

  /**
   * Calls back once, at this time on the monotonic clock at the latest, and up to `TOGETHER` ms before. A later time
   * never replaces an earlier one.
   */
  schedule(call: () => void, at: number): void {
    if (at >= (this.#due.get(call) ?? Number.POSITIVE_INFINITY)) return;
    this.#due.set(call, at);
    this.#timer.by(at);
  }

  /** Without calls to make, the timer does not keep the process alive. The next one may come soon. */
  cancel(call: () => void): void {
    if (this.#due.delete(call) && this.#due.size === 0) this.#timer.rest();
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#due.clear();
    this.#timer.cancel();
  }

  #tick(): void {
    const until = clock.now() + TOGETHER;
    const due: (() => void)[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [call, at] of this.#due) {
      if (at > until) next = Math.min(next, at);
      else due.push(call);
    }
    for (const call of due) {
      // A call before it may have cancelled this one.
      if (this.#due.delete(call)) call();
    }
    this.#timer.by(next);
  }
}

/** Pauses of background work. They do not keep the process alive, and none outlives `close`. */
export class BackgroundPauses {
  /** What ends each of those that are under way. */
  readonly #ends = new Set<() => void>();
  #isClosed = false;

  /** Resolves after `ms`, or when there are to be no pauses any more. */
  pause(ms: number): Promise<void> {
    return this.within(ms, new Promise<never>(() => undefined));
  }

  /** Settles as `promise` does, or with `undefined` after `ms`, or when there are to be no pauses any more. */
  async within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
    if (this.#isClosed) return undefined;
    let end = (): void => undefined;
    const over = new Promise<undefined>((resolve) => (end = () => resolve(undefined)));
    this.#ends.add(end);
    const timer = new Timer(ms, end, false);
    try {
      return await Promise.race([promise, over]);
    } finally {
      timer.cancel();
      this.#ends.delete(end);
    }
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#ends]) end();
  }
}

/** A member of a heap knows its position there: leaving costs no search. */
export interface Timed {
  /** Kept by the heap. */
  position: number;
}

/**
 * Members by a time, of which the earliest is found at once. Joining and leaving cost O(log n): a binary heap. A member
 * is in one heap at a time at most. Its time stays as it is until it leaves.
 */
export class TimeHeap<T extends Timed> {
  readonly #members: T[] = [];
  /** The times of the members, in a separate array: numbers in objects would be allocated one by one. */
  readonly #times: number[] = [];

  get first(): T | undefined {
    return this.#members[0];
  }

  /** The time of the first member; `Infinity` without one. */
  get earliest(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  /** In no particular order. The array is a copy. */
  get members(): T[] {
    return [...this.#members];
  }

  /** `undefined`: it is no member of this heap. */
  timeOf(member: T): number | undefined {
    const { position } = member;
    // V8 is slow to find out that an array has nothing at -1.
    return position >= 0 && this.#members[position] === member ? this.#times[position] : undefined;
  }

  /** Does nothing for a member that is not in this heap. */
  remove(member: T): void {
    const { position } = member;
    if (position < 0 || this.#members[position] !== member) return;
    member.position = -1;
    const last = this.#members.pop() as T;
    const time = this.#times.pop() as number;
    if (last !== member) this.add(last, time, position);
  }

  /** At this free position, or where those above or below it leave it a place. */
  add(member: T, time: number, position = this.#members.length): void {
    const times = this.#times;
    let at = position;
    for (let above = (at - 1) >> 1; at > 0 && (times[above] as number) > time; above = (at - 1) >> 1) {
      this.#put(at, this.#members[above] as T, times[above] as number);
      at = above;
    }
    for (let below = 2 * at + 1; below < times.length; below = 2 * at + 1) {
      if ((times[below + 1] ?? Number.POSITIVE_INFINITY) < (times[below] as number)) below++;
      if (time <= (times[below] as number)) break;
      this.#put(at, this.#members[below] as T, times[below] as number);
      at = below;
    }
    this.#put(at, member, time);
  }

  #put(at: number, member: T, time: number): void {
    this.#members[at] = member;
    this.#times[at] = time;
    member.position = at;
  }
}

/** The pauses between tries that failed: doubled from the first to the longest. */
export class Backoff {
  #next: number;
  readonly #first: number;
  readonly #longest: number;

  /** In ms. */
  constructor(first = 10, longest = 250) {
    this.#first = first;
    this.#longest = longest;
    this.#next = first;
  }

  /** ms until the next try. */
  next(): number {
    const pause = this.#next;
    this.#next = Math.min(2 * pause, this.#longest);
    return pause;
  }

  /** A try succeeded. */
  reset(): void {
    this.#next = this.#first;
  }
}
