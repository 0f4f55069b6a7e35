import { randomUUID } from 'node:crypto';
import { type Lease, type RedisClient, RedisLockRegistry } from '../../lib';
import { conflicts } from '../../support/judge/exclusion';
import { LOCK_TYPES } from '../support/lock-types';
import { until } from '../support/until';
import { LeaseRecords } from './lease-records';

/** ms */
export const TTL = 12_000;
const WORK = 10;

/** ms; longer than any fault that is made here. */
const UNAVAILABLE_AFTER = 60_000;

/** ms; all calls of a run settle within this time. */
const SETTLES_WITHIN = 45_000;

export type LockType = (typeof LOCK_TYPES)[number];

/** What was measured for one lock type. Times in ms. */
export interface Outcome {
  readonly lockType: LockType;
  readonly entries: number;
  /** The longest time in which no caller entered the busy lock. */
  readonly pause: number;
  /** The longest time for which a call for the busy lock waited. */
  readonly wait: number;
  /** The longest time for which two callers relied on one lock. */
  readonly double: number;
  /** Leases that were lost, of those that were held during the fault. */
  readonly lost: number;
  /** After the fault was made: when the holder of the last lost lease learned of it; `undefined`: none was lost. */
  readonly learned: number | undefined;
  /** The errors of acquisitions that rejected. */
  readonly rejected: readonly string[];
  /** Leases of the busy lock whose `unlock` rejected: they were lost, or Redis did not answer. */
  readonly unlocks: number;
  /** Keys that are left. */
  readonly left: readonly string[];
}

/**
 * Two processes with locks of one type. Callers of both take one lock in turn; and the first one holds locks for the
 * whole time, for which the second one waits.
 */
export class Load {
  readonly lockType: LockType;
  /** A part of every name in Redis. */
  readonly id = randomUUID();
  readonly #registries: readonly RedisLockRegistry[];
  readonly #entered: number[] = [];
  readonly #kept: Lease[] = [];
  readonly #calls: Promise<unknown>[] = [];
  readonly #leaving = new AbortController();
  readonly #lostAt: number[] = [];
  readonly #records: readonly LeaseRecords[];
  #longestWait = 0;
  #faultAt = 0;
  readonly #rejected: string[] = [];
  #unlocks = 0;
  #isOver = false;

  constructor(lockType: LockType, clients: readonly RedisClient[], tag: string) {
    this.lockType = lockType;
    this.#records = clients.map((_, i) => new LeaseRecords(`process-${i + 1}`));
    this.#registries = clients.map(
      (client) =>
        new RedisLockRegistry(client, {
          registryKey: `{${tag}}${this.id}`,
          lockType,
          expireAfter: TTL,
          idleBetweenTries: 50,
          unavailableAfter: UNAVAILABLE_AFTER,
          onWarning: () => undefined,
        }),
    );
  }

  /** Resolves when all locks are held, and the busy one has been taken several times. */
  async start(): Promise<void> {
    const [first, second] = this.#registries as [RedisLockRegistry, RedisLockRegistry];
    const [ofFirst, ofSecond] = this.#records as [LeaseRecords, LeaseRecords];
    for (const key of ['kept 1', 'kept 2']) {
      const lease = await ofFirst.lock(first.obtain(key));
      this.#kept.push(lease);
      lease.signal.addEventListener('abort', () => this.#lostAt.push(performance.now()));
      this.#calls.push(this.#waitFor(second, ofSecond, key));
    }
    this.#registries.forEach((registry, i) => {
      this.#calls.push(this.#takeAgainAndAgain(registry, this.#records[i] as LeaseRecords));
    });
    await until(() => this.#entered.length > 10, { within: SETTLES_WITHIN });
  }

  /** The fault is about to be made. */
  faultBegins(): void {
    this.#faultAt = performance.now();
  }

  /** Resolves when the busy lock has been taken several times from now on. */
  async recovered(): Promise<void> {
    const before = this.#entered.length;
    await until(() => this.#entered.length > before + 5, { within: SETTLES_WITHIN });
  }

  /** Ends all callers. Rejects when a call does not settle. */
  async stop(): Promise<void> {
    this.#isOver = true;
    let isSettled = false;
    this.#leaving.abort(new Error('the run is over'));
    const all = Promise.allSettled([...this.#calls, ...this.#kept.map((lease) => this.#records[0]?.unlock(lease))]);
    void all.then(() => {
      isSettled = true;
    });
    await until(() => isSettled, { within: SETTLES_WITHIN });
    await Promise.all(this.#registries.map((registry) => registry.close()));
  }

  /** Ends what is left after a failure: nothing goes on in the background. */
  async abandon(): Promise<void> {
    this.#isOver = true;
    for (const records of this.#records) records.stop();
    this.#leaving.abort(new Error('the run is over'));
    await Promise.all(this.#registries.map((registry) => registry.close({ timeout: 0 })));
  }

  /** Keeps what the processes saw of their leases, for `npm run judge`. */
  keepRecords(folder: string): void {
    for (const records of this.#records) records.keep(folder);
  }

  outcome(left: readonly string[]): Outcome {
    const together = conflicts(this.#records.flatMap(({ stays }) => stays)).map((one) => one.together);
    const gaps = this.#entered.slice(1).map((at, i) => at - (this.#entered[i] as number));
    return {
      lockType: this.lockType,
      entries: this.#entered.length,
      pause: Math.round(Math.max(0, ...gaps)),
      wait: Math.round(this.#longestWait),
      double: Math.round(Math.max(0, ...together)),
      learned: this.#lostAt.length > 0 ? Math.round(Math.max(...this.#lostAt) - this.#faultAt) : undefined,
      lost: this.#kept.filter(({ signal }) => signal.aborted).length,
      rejected: this.#rejected,
      unlocks: this.#unlocks,
      left,
    };
  }

  async #takeAgainAndAgain(registry: RedisLockRegistry, records: LeaseRecords): Promise<void> {
    while (!this.#isOver) {
      const calledAt = performance.now();
      const lease = await records
        .lock(registry.obtain('busy'), { signal: this.#leaving.signal })
        .catch((error: unknown) => this.#noteRejection(error));
      if (lease === undefined) continue;
      this.#entered.push(performance.now());
      this.#longestWait = Math.max(this.#longestWait, performance.now() - calledAt);
      await new Promise((resolve) => setTimeout(resolve, WORK));
      await records.unlock(lease).catch(() => this.#unlocks++);
    }
  }

  #noteRejection(error: unknown): void {
    if (!this.#isOver) this.#rejected.push(String(error));
  }

  async #waitFor(registry: RedisLockRegistry, records: LeaseRecords, key: string): Promise<void> {
    try {
      const lease = await records.lock(registry.obtain(key), { signal: this.#leaving.signal });
      await new Promise((resolve) => this.#leaving.signal.addEventListener('abort', resolve));
      await records.unlock(lease);
    } catch (error) {
      this.#noteRejection(error);
    }
  }
}

/** A load of each lock type. */
export function loads(clients: readonly RedisClient[], tag: string): Load[] {
  return LOCK_TYPES.map((lockType) => new Load(lockType, clients, tag));
}
