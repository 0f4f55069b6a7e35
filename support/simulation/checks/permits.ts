import type { ProcessPlan } from '../plan';
import type { Timeline } from '../timeline';
import { type Host, quietFor } from '../world';

/** ms in which a number that is given reaches the lock, where nothing is disturbed. */
const TOLD_WITHIN = 200;

/**
 * ms by which the order of two numbers may differ in Redis: each counts from when its command was sent, but the server
 * learns only when it arrived.
 */
const ON_THE_WAY = 50;

/** ms in which a command that was sent over a connection that broke is executed. */
const EXECUTED_WITHIN = 15_000;

interface Given {
  readonly number: number;
  readonly host: Host;
  readonly at: number;
  /** Its client repeats commands: then it counts from when it was sent last. */
  readonly mayComeAgain: boolean;
  /** Its call ended without an answer: the lock may never be told. */
  isInDoubt: boolean;
}

/** How many permits each semaphore has: the number that was given last counts for everybody. */
export class PermitChecks {
  readonly #timeline: Timeline;
  readonly #processes: readonly ProcessPlan[];
  /** By key: the last one that is known to count, and all that were given since. */
  readonly #given = new Map<string, Given[]>();

  constructor(timeline: Timeline, processes: readonly ProcessPlan[]) {
    this.#timeline = timeline;
    this.#processes = processes;
  }

  given(host: Host, key: string, number: number): void {
    const all = this.#given.get(key) ?? [];
    this.#given.set(key, all);
    const mayComeAgain = this.#processes[host.index]?.client.repeats ?? false;
    all.push({ number, host, at: this.#timeline.now, mayComeAgain, isInDoubt: false });
  }

  /** A call of this process for the key ended without an answer. */
  doubt(host: Host, key: string): void {
    for (const one of this.#given.get(key) ?? []) if (one.host === host) one.isInDoubt = true;
  }

  /** Redis lost what it knew. */
  lost(): void {
    for (const all of this.#given.values()) for (const one of all) one.isInDoubt = true;
  }

  /** Those that may count now. */
  numbers(key: string): readonly number[] {
    const all = this.#given.get(key) ?? [];
    const known = all.findLast((one) => this.#isKnown(one))?.at ?? Number.NEGATIVE_INFINITY;
    // What is in doubt may be executed late, and its age is that of its sending.
    const isLate = (one: Given): boolean => {
      const age = this.#timeline.now - one.at;
      const wasDelayed = quietFor({ timeline: this.#timeline }, one.host) <= age;
      return (one.isInDoubt || one.mayComeAgain || wasDelayed) && age < EXECUTED_WITHIN;
    };
    const counts = all.filter((one) => one.at >= known - ON_THE_WAY || isLate(one));
    this.#given.set(key, counts);
    return counts.map(({ number }) => number);
  }

  #isKnown({ host, at, isInDoubt }: Given): boolean {
    const age = this.#timeline.now - at;
    return (
      age > TOLD_WITHIN && !isInDoubt && quietFor({ timeline: this.#timeline }, host) > age && host.closing === 'no'
    );
  }
}
