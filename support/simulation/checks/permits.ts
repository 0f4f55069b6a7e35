import { type Host, lockName, quietFor, type World } from '../world';

/**
 * ms in which a number that is given reaches the lock, where nothing is disturbed. That of a caller behind another one of
 * its process goes with the next poll.
 */
const TOLD_WITHIN = 1_200;

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
  /** Its call ended without an answer: the number may never reach the lock. */
  isInDoubt: boolean;
}

type Surroundings = Pick<World, 'plan' | 'timeline' | 'server'>;

/**
 * How many permits each semaphore has: the number that was given last counts for everybody, as long as there is a queue.
 * Redis forgets it with the queue, and then each process has the number that it gave last.
 */
export class PermitChecks {
  readonly #world: Surroundings;
  /** By key: the last one that is known to count, all that were given since, and the last one of each process. */
  readonly #given = new Map<string, Given[]>();
  /** By key: when there was no queue. */
  readonly #unqueuedAt = new Map<string, number>();

  constructor(world: Surroundings) {
    this.#world = world;
  }

  given(host: Host, key: string, number: number): void {
    const all = this.#given.get(key) ?? [];
    this.#given.set(key, all);
    const { plan, timeline } = this.#world;
    const mayComeAgain = plan.processes[host.index]?.client.repeats ?? false;
    all.push({ number, host, at: timeline.now, mayComeAgain, isInDoubt: false });
  }

  /** A call of this process for the key ended without an answer. */
  doubt(host: Host, key: string): void {
    for (const one of this.#given.get(key) ?? []) if (one.host === host) one.isInDoubt = true;
  }

  /** Redis lost what it knew. */
  lost(): void {
    for (const all of this.#given.values()) for (const one of all) one.isInDoubt = true;
  }

  /** After every event. */
  note(key: string): void {
    const { server, timeline } = this.#world;
    if (!server.keys.has(`{${lockName(key)}}:waiters`)) this.#unqueuedAt.set(key, timeline.now);
  }

  /** Those that may count now. */
  numbers(key: string): readonly number[] {
    const all = this.#given.get(key) ?? [];
    const { timeline } = this.#world;
    const known = all.findLast((one) => this.#isKnown(one))?.at ?? Number.NEGATIVE_INFINITY;
    const isForgotten = (this.#unqueuedAt.get(key) ?? 0) > known + ON_THE_WAY;
    const last = new Set(new Map(all.map((one) => [one.host, one])).values());
    // What is in doubt may be executed late, and its age is that of its sending.
    const isLate = (one: Given): boolean => {
      const age = timeline.now - one.at;
      const wasDelayed = quietFor(this.#world, one.host) <= age;
      return (one.isInDoubt || one.mayComeAgain || wasDelayed) && age < EXECUTED_WITHIN;
    };
    const counts = (one: Given): boolean =>
      one.at >= known - ON_THE_WAY || isLate(one) || (isForgotten && last.has(one));
    this.#given.set(
      key,
      all.filter((one) => counts(one) || last.has(one)),
    );
    return all.filter(counts).map(({ number }) => number);
  }

  #isKnown({ host, at, isInDoubt }: Given): boolean {
    const age = this.#world.timeline.now - at;
    return age > TOLD_WITHIN && !isInDoubt && quietFor(this.#world, host) > age && host.closing === 'no';
  }
}
