import { AsyncResource } from 'node:async_hooks';
import type { Random } from '../../random';
import type { History } from '../history';
import type { Cancel, Timeline } from '../timeline';

/** In what order things that wait for the event loop are done when it runs again. */
const PHASES = ['task', 'timer', 'input', 'immediate'] as const;

export type Phase = (typeof PHASES)[number];

interface Waiting {
  readonly phase: Phase;
  readonly due: number;
  readonly run: () => void;
}

export interface VirtualTimer {
  isPending: boolean;
  /** Takes its event back: what reads a lease after each event may set a timer anew each time. */
  cancel: Cancel;
  keepsAlive: boolean;
  ref(): VirtualTimer;
  unref(): VirtualTimer;
}

/** How the clocks of a process and its timers differ from the ideal. */
export interface ClockTraits {
  /** How fast its clocks run, about 1. */
  readonly rate: number;
  /** ms by which a timer may come before or after its time. */
  readonly timerJitter: number;
}

/** One process with an event loop and clocks of its own, on the common virtual time. */
export class SimulatedProcess {
  readonly name: string;
  readonly timers = new Set<VirtualTimer>();
  isAlive = true;
  diedAt = Number.POSITIVE_INFINITY;
  pausedUntil = Number.NEGATIVE_INFINITY;
  /** When its wall clock last went on without its monotonic clock; -Infinity: never. */
  lastJumped = Number.NEGATIVE_INFINITY;
  /** Its event loop is about to be blocked for so many ms. */
  onPause: (ms: number) => void = () => undefined;
  readonly #timeline: Timeline;
  readonly #traits: ClockTraits;
  readonly #random: Random;
  readonly #history: History;
  #waiting: Waiting[] = [];
  /** ms for which the monotonic clock stood still. */
  #suspended = 0;
  #suspendedSince: number | undefined;
  #wallStep = 0;
  #isObserved = false;
  #unread = 0;

  constructor(name: string, timeline: Timeline, traits: ClockTraits, random: Random, history: History) {
    this.name = name;
    this.#timeline = timeline;
    this.#traits = traits;
    this.#random = random;
    this.#history = history;
  }

  /** How fast its clocks run, about 1. */
  get rate(): number {
    return this.#traits.rate;
  }

  get isPaused(): boolean {
    return this.pausedUntil > this.#timeline.now;
  }

  /** ms for which its machine has been suspended so far. */
  get suspended(): number {
    return this.#suspended;
  }

  /** The machine stands still: nothing of the process runs, and its monotonic clock does not either. */
  get isSuspended(): boolean {
    return this.#suspendedSince !== undefined;
  }

  /** Something came while the process was paused, and was not read yet. */
  get hasUnread(): boolean {
    return this.#unread > 0;
  }

  /** The monotonic clock. Code that runs after it has blocked the event loop reads the end of the pause. */
  now(): number {
    const time = this.#isObserved ? this.#timeline.now : Math.max(this.#timeline.now, this.pausedUntil);
    return 1_000 + ((this.#suspendedSince ?? time) - this.#suspended) * this.#traits.rate;
  }

  wallNow(): number {
    const time = this.#isObserved ? this.#timeline.now : Math.max(this.#timeline.now, this.pausedUntil);
    return Math.floor(1_700_000_000_000 + time * this.#traits.rate + this.#wallStep);
  }

  /** Reads something as the process would read it at this very moment, also in a pause. */
  observe<T>(read: () => T): T {
    this.#isObserved = true;
    try {
      return read();
    } finally {
      this.#isObserved = false;
    }
  }

  /** Runs something in this process as soon as its event loop runs. */
  post(phase: Phase, run: () => void): void {
    if (!this.isAlive) return;
    if (!this.isPaused) {
      run();
      return;
    }
    if (phase === 'input') this.#unread++;
    this.#waiting.push({ phase, due: this.#timeline.now, run });
  }

  /** After what was written to sockets in this turn has gone out, and what lies there has been read. */
  immediate(run: () => void): void {
    const bound = inContext('Immediate', run);
    this.#timeline.after(0, () => this.post('immediate', bound));
  }

  setTimeout(callback: () => void, ms: number): VirtualTimer {
    const delay = Math.max(1, Math.trunc(ms) || 1);
    const due = this.now() + delay;
    // As in Node.js, a timer runs in the async context of the caller that set it.
    const bound = inContext('Timeout', callback);
    const timer: VirtualTimer = {
      isPending: true,
      cancel: () => undefined,
      keepsAlive: true,
      ref: () => {
        timer.keepsAlive = true;
        return timer;
      },
      unref: () => {
        timer.keepsAlive = false;
        return timer;
      },
    };
    this.timers.add(timer);
    this.#wakeAt(timer, due, bound);
    return timer;
  }

  clearTimeout(timer: VirtualTimer | undefined): void {
    if (timer === undefined) return;
    timer.isPending = false;
    timer.cancel();
    this.timers.delete(timer);
  }

  #wakeAt(timer: VirtualTimer, due: number, callback: () => void): void {
    const { rate, timerJitter } = this.#traits;
    const jitter = timerJitter === 0 ? 0 : this.#random.between(-timerJitter, timerJitter);
    timer.cancel = this.#timeline.after(Math.max(0.1, (due - this.now()) / rate + jitter), () => {
      this.post('timer', () => {
        if (!timer.isPending) return;
        // The monotonic clock stood still meanwhile.
        if (this.now() < due - 1) {
          this.#wakeAt(timer, due, callback);
          return;
        }
        this.clearTimeout(timer);
        callback();
      });
    });
  }

  /** Blocks the event loop; `suspends`: the whole machine, so that its monotonic clock stands still. */
  pause(ms: number, suspends = false): void {
    if (!this.isAlive) return;
    const end = this.#timeline.now + ms;
    if (suspends && this.#suspendedSince === undefined && !this.isPaused) {
      this.#suspendedSince = this.#timeline.now;
      this.#timeline.at(end, () => {
        this.#suspended += this.#timeline.now - (this.#suspendedSince ?? this.#timeline.now);
        this.#suspendedSince = undefined;
        this.lastJumped = this.#timeline.now;
      });
    } else if (suspends) {
      return;
    }
    if (end <= this.pausedUntil) return;
    this.onPause(ms);
    this.pausedUntil = end;
    this.#timeline.at(end, () => this.#resume());
  }

  /** The caller computes for a while; resolves at once after it. */
  block(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.pause(ms);
      this.post('task', resolve);
    });
  }

  stepWallClock(ms: number): void {
    this.#wallStep += ms;
    if (ms > 0) this.lastJumped = this.#timeline.now;
  }

  kill(): void {
    this.isAlive = false;
    this.diedAt = this.#timeline.now;
    this.#waiting = [];
    this.timers.clear();
  }

  #resume(): void {
    if (this.isPaused || !this.isAlive) return;
    this.#history.note(this.name, () => 'runs again');
    const waiting = this.#waiting.sort((a, b) => PHASES.indexOf(a.phase) - PHASES.indexOf(b.phase) || a.due - b.due);
    this.#waiting = [];
    for (const { phase, run } of waiting) {
      this.#timeline.after(0, () => {
        if (phase === 'input') this.#unread--;
        this.post(phase, run);
      });
    }
  }
}

/** Runs in the async context of now whenever it runs. */
function inContext(type: string, run: () => void): () => void {
  const resource = new AsyncResource(type);
  return () => resource.runInAsyncScope(run);
}
