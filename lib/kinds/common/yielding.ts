import type { Wait } from '../../core/wait';
import { clock } from '../../internal/clock';
import { LONGEST_PAUSE } from './shared-with-pollers';
import type { Waiting } from './waiting';

/** A release by this process. Times are on the monotonic clock, in ms. */
interface OwnRelease {
  readonly sentAt: number;
  readonly answeredAt: number;
  /** Listeners of other processes: at least 1 at the end of a slice; 0 or 1 where they cannot be counted. */
  readonly others: number;
  readonly areCounted: boolean;
  /** Releases that had been noticed before it was sent. */
  readonly hintsBefore: number;
  /** Local callers were waiting: the lock was released because the slice was over. */
  readonly atSliceEnd: boolean;
  /** ms for which another process needs a free lock to stay free (`WantedMark`); 0: none is known. */
  readonly headStart: number;
}

/**
 * How the processes that contend for one lock share it. A process passes it on among its callers for a slice of time,
 * and then gives others a chance. One object for each lock. Times are whole ms: fractions would cost 16 bytes each.
 */
export type Yielding = TimeSlice | YieldToListeners;

/** How long a free lock is left to processes that poll, or that are far: this many of their intervals, or head starts. */
const PAUSE_FOR_POLLERS = 1.1;

/** ms; a timer may end this much early: Node counts it in whole ms, from the start of a round of the event loop. */
const TIMER_EARLY = 2;

/**
 * The default of `handOver` for `spin`: a slice, in intervals of polling, and its limits in ms. Others may poll at longer
 * intervals and miss the pause after it: the shorter the slices, the sooner comes the next pause.
 */
const POLLED_SLICE_INTERVALS = 4;
const LEAST_POLLED_SLICE = 50;
const POLLED_SLICE = 400;

/** The longest slice of a process that nobody contends with is this many times as long. */
const LONGEST_POLLED_SLICE = 4;

/**
 * A slice among several others, in intervals of polling: longer than one, so that the others see it, and no multiple,
 * which would bring the same process back each time.
 */
const SHORT_SLICE = 1.2;

/** A process that missed slices polls up to this many times as often; one that holds other locks while it waits, at once. */
const FASTEST_POLLING = 8;

/**
 * Yielding to processes that cannot be seen: they poll. At the end of its slice a process releases the lock and waits
 * a little longer than a polling interval: within one interval, every process that polls has tried.
 *
 * The process whose polls fall right after a release would always win. So each process counts the slices that it missed:
 * one for every two other owners in succession, or for the first other owner after a slice of its own. Each missed slice
 * doubles its polling. Two or more shorten its next slice, as several processes share the lock. Where nobody contends, or
 * one owner holds the lock all the time, nothing changes.
 *
 * Releasing costs a pause in any case, so slices are long otherwise. Longer ones are only for a process that is alone, as
 * far as it knows: each pause in which nobody took the lock doubles the next slice. An attempt that is refused ends that.
 */
export class TimeSlice {
  readonly #idleBetweenTries: number;
  readonly #handOver: number | undefined;
  /** ms that a slice lasts by default. */
  readonly #usualSlice: number;
  /** ms that the next slice lasts. */
  #slice: number;
  #sliceEndsAt = 0;
  #standBackUntil = 0;
  /** The lock was released at the end of a slice, and no attempt was refused since. */
  #isUncontested = false;
  /** The last owner that this process knows of; and when it knew. */
  #holder: string | undefined;
  #seenAt = 0;
  #missedSlices = 0;
  /** Several other processes had slices before the last one of this process. */
  #wereSeveral = false;

  /** In ms. `handOver`: the length of each slice. */
  constructor(idleBetweenTries: number, handOver?: number) {
    this.#idleBetweenTries = idleBetweenTries;
    this.#handOver = handOver;
    const slice = Math.max(LEAST_POLLED_SLICE, POLLED_SLICE_INTERVALS * idleBetweenTries);
    this.#usualSlice = Math.ceil(Math.min(slice, POLLED_SLICE));
    this.#slice = this.#usualSlice;
  }

  /** ms until the next attempt of a process that waits. `holdsOthers`: as in `Wait`. */
  pollingInterval(holdsOthers: boolean): number {
    return (
      this.#idleBetweenTries / (holdsOthers ? FASTEST_POLLING : Math.min(2 ** this.#missedSlices, FASTEST_POLLING))
    );
  }

  /** This process acquired the lock from Redis at this time: a slice begins. */
  acquired(sentAt: number): void {
    this.#slice = this.#handOver ?? this.#nextSlice(sentAt);
    this.#sliceEndsAt = Math.ceil(sentAt + this.#slice);
    this.#isUncontested = false;
    this.#missedSlices = 0;
    this.#sees(undefined, sentAt);
  }

  #nextSlice(sentAt: number): number {
    const sincePause = sentAt - this.#standBackUntil;
    const isRecent = this.#hasLooked(sentAt);
    const areSeveral = isRecent && this.#missedSlices > 1;
    const isShort = areSeveral || (isRecent && this.#wereSeveral);
    this.#wereSeveral = areSeveral;
    // Without a whole pause before it, or long after one, nothing is known of others.
    if (this.#isUncontested && sincePause >= -TIMER_EARLY && sincePause < POLLED_SLICE) {
      return Math.min(2 * this.#slice, LONGEST_POLLED_SLICE * this.#usualSlice);
    }
    const shortSlice = Math.ceil(SHORT_SLICE * this.#idleBetweenTries);
    return isShort ? Math.min(this.#usualSlice, shortSlice) : this.#usualSlice;
  }

  /** The next slice is not as that of a process that knows of no others. */
  get hasLearnt(): boolean {
    return this.#holder !== undefined || this.#wereSeveral;
  }

  isSliceOver(now: number): boolean {
    return now >= this.#sliceEndsAt;
  }

  /** This owner held the lock at an attempt of this process. */
  refused(owner: string | undefined, now: number): void {
    this.#isUncontested = false;
    const isKnown = this.#holder !== undefined && this.#hasLooked(now);
    if (!isKnown) this.#missedSlices = 0;
    else if (owner !== this.#holder) this.#missedSlices++;
    this.#sees(owner, now);
  }

  released({ answeredAt, atSliceEnd }: OwnRelease): void {
    if (!atSliceEnd) return;
    this.#standBackUntil = Math.ceil(answeredAt + PAUSE_FOR_POLLERS * this.#idleBetweenTries);
    this.#isUncontested = true;
    this.#sees('this process', answeredAt);
  }

  /** Long after the last look nothing is known of the slices in between, since nobody here waited. */
  #hasLooked(now: number): boolean {
    return now - this.#seenAt <= 3 * this.#idleBetweenTries;
  }

  #sees(holder: string | undefined, now: number): void {
    this.#holder = holder;
    this.#seenAt = Math.floor(now);
  }

  /** The pause in which a free lock is left to other processes; `undefined`: none. */
  standBack(wait: Wait): Promise<void> | undefined {
    return wait.standBack(this.#standBackUntil - clock.now());
  }
}

/** ms; the default of `handOver`. */
const SLICE = 50;

/** ms; the unit in which processes give precedence to each other is a measured round trip, within these limits. */
const LEAST_STEP = 2;
const LONGEST_STEP = 20;

/** After a slice, the steps left to others whose slices are short; and how many others there are, where that is unknown. */
const STEPS_FOR_SHORT_SLICES = 2;
const UNCOUNTED_OTHERS = 2;

/** ms; a process stands back for this long at most. */
const LONGEST_STAND_BACK = 200;

/** ms; after this time a release does not count any more. */
const MEMORY = 1_000;

/**
 * Yielding to processes that listen for releases. At the end of its slice a process releases the lock if others
 * listen.
 *
 * PUBLISH always wakes listeners in the same order, and the releasing process itself could try before all of them.
 * Without a rule the same processes would win every race. After its own release, with n other listeners, a process
 * waits n + 1 steps. Each release that it notices takes one step off. It notices its own release too. So the process
 * whose last release is the oldest tries first.
 *
 * Java gives the lock up after each section, and reacts to a message later than Node. So after a slice, a process leaves
 * some steps at each release until each of the others may have had as much: in one slice, or in many short ones.
 *
 * A process that no message reaches, or whose attempts take longer than a step, would hardly ever meet a free lock. Its mark
 * asks for a head start. Each process that found the mark at its own release gives it, after each release that it notices.
 */
export class YieldToListeners {
  readonly #slice: number;
  #sliceEndsAt = 0;
  #release: OwnRelease | undefined;

  constructor(slice = SLICE) {
    this.#slice = slice;
  }

  /** The usual one: waiters are notified. */
  pollingInterval(): undefined {}

  /** This process has the lock from Redis, or keeps it at the end of its slice: another slice begins. */
  acquired(sentAt: number): void {
    this.#sliceEndsAt = Math.ceil(sentAt + this.#slice);
  }

  get hasLearnt(): boolean {
    return this.#release !== undefined;
  }

  isSliceOver(now: number): boolean {
    return now >= this.#sliceEndsAt;
  }

  refused(): void {}

  released(release: OwnRelease): void {
    this.#release = release.others > 0 ? release : undefined;
  }

  standBack(wait: Wait, waiting: Waiting | undefined): Promise<void> | undefined {
    const pause = this.#pause(clock.now(), waiting);
    return pause > 0 ? this.#standBack(wait, waiting, pause) : undefined;
  }

  async #standBack(wait: Wait, waiting: Waiting | undefined, first: number): Promise<void> {
    const endsAt = clock.now() + LONGEST_STAND_BACK;
    let pause = first;
    while (pause > 0 && wait.remaining > 0) {
      const isHint = await wait.suspend<true>(Math.min(pause, wait.remaining / 2), (resume) =>
        waiting?.onRelease(() => resume(true)),
      );
      if (!isHint) return;
      // The pause begins again at each release that is noticed, with one step less.
      const now = clock.now();
      pause = Math.min(this.#pause(now, waiting), endsAt - now);
    }
  }

  /** ms for which others go first, from now on: counted from our own release, or the last one that was noticed. */
  #pause(now: number, waiting: Waiting | undefined): number {
    const release = this.#release;
    if (release === undefined || now - release.sentAt >= MEMORY) return 0;
    const isTimeOfOthers = now - release.answeredAt < this.#timeOfOthers(release);
    const noticed = (waiting?.hints ?? 0) - release.hintsBefore;
    const ahead = release.others + 1 - noticed;
    const steps = Math.max(ahead, isTimeOfOthers ? STEPS_FOR_SHORT_SLICES : 0);
    const step = Math.min(Math.max(LEAST_STEP, release.answeredAt - release.sentAt), LONGEST_STEP);
    const since = Math.max(release.answeredAt, waiting?.hintedAt ?? 0);
    const forListeners = Math.min(steps * step, LONGEST_STAND_BACK);
    // Others still give this process its head start after its own release: it would be the first one again.
    const own = noticed > 1 ? 0 : (waiting?.headStart ?? 0);
    // Once all have had a turn, they may know nothing of the mark any more, and would always be before this process.
    const marked = ahead < 0 ? 0 : release.headStart;
    const headStart = Math.min(PAUSE_FOR_POLLERS * Math.max(marked, own), LONGEST_PAUSE);
    return headStart + forListeners - (now - since);
  }

  /** ms after a release in which others may have their slices. */
  #timeOfOthers({ atSliceEnd, others, areCounted }: OwnRelease): number {
    if (!atSliceEnd) return 0;
    return (areCounted ? others : Math.max(others, UNCOUNTED_OTHERS)) * this.#slice;
  }
}
