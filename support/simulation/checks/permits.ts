import type { Timeline } from '../timeline';
import { type Host, quietFor } from '../world';

/** ms in which a number that is given reaches the lock, where nothing is disturbed. */
const TOLD_WITHIN = 200;

/** ms in which a command that was sent over a connection that broke is executed. */
const EXECUTED_WITHIN = 15_000;

interface Given {
  readonly number: number;
  readonly host: Host;
  readonly at: number;
  /** Its call ended without an answer: the lock may never be told. */
  isInDoubt: boolean;
}

/** How many permits each semaphore has: the number that was given last counts for everybody. */
export class PermitChecks {
  readonly #timeline: Timeline;
  /** By key: the last one that is known to count, and all that were given since. */
  readonly #given = new Map<string, Given[]>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  given(host: Host, key: string, number: number): void {
    const all = this.#given.get(key) ?? [];
    this.#given.set(key, all);
    all.push({ number, host, at: this.#timeline.now, isInDoubt: false });
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
    const last = all.findLastIndex((one) => this.#isKnown(one));
    // What is in doubt may be executed late, and its age is that of its sending.
    const counts = all.filter(
      (one, i) => i >= last || (one.isInDoubt && this.#timeline.now - one.at < EXECUTED_WITHIN),
    );
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
