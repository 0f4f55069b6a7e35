import { randomUUID } from 'node:crypto';
import { type Lease, type RedisClient, RedisLockRegistry } from '../../../lib';
import { type Access, conflicts } from '../../../support/judge/exclusion';
import { PERMITS } from '../../../support/judge/records';
import { lockTypeOf } from '../../../support/soak/settings';
import { lockFor } from '../../../support/soak/worker/locks';
import { DISTINCT_TYPES, LOCK_TYPES } from '../../support/lock-types';
import { until } from '../../support/until';
import { LeaseRecords } from './lease-records';
import type { Topology } from './topologies';

/** ms */
export const TTL = 12_000;
const WORK = 10;

/** ms; longer than any fault that is made here. */
const UNAVAILABLE_AFTER = 60_000;

/** ms; all calls of a run settle within this time. */
const SETTLES_WITHIN = 45_000;

/** ms; longer than a replica takes that follows, and shorter than any fault. */
const REPLICA_TIMEOUT = 300;

const SHARED_TYPES = ['semaphore', 'read-write'] as const;
type LoadType = (typeof LOCK_TYPES | typeof SHARED_TYPES)[number];

/** Readers and writers take turns. */
function accessOf(type: LoadType, turn: number): Access {
  if (type === 'semaphore') return 'permit';
  if (type !== 'read-write') return 'exclusive';
  return turn % 2 === 0 ? 'write' : 'read';
}

/** What was measured for one load. Times in ms. */
export interface Outcome {
  readonly entries: number;
  /** The longest time in which no caller entered the busy lock. */
  readonly pause: number;
  /** The longest time for which a call for the busy lock waited. */
  readonly wait: number;
  /** The longest time for which two callers relied on one lock. */
  readonly double: number;
  /** Leases that were lost, of those that are held until the end. */
  readonly lost: number;
  readonly lasting: number;
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
  readonly name: string;
  readonly isReplicated: boolean;
  /** A part of every name in Redis. */
  readonly id = randomUUID();
  readonly #type: LoadType;
  readonly #registries: readonly RedisLockRegistry[];
  readonly #entered: number[] = [];
  readonly #kept: Lease[] = [];
  /** Those that are held until the end, unless they are lost. */
  readonly #lasting: Lease[] = [];
  readonly #calls: Promise<unknown>[] = [];
  readonly #leaving = new AbortController();
  readonly #lostAt: number[] = [];
  readonly #records: readonly LeaseRecords[];
  #longestWait = 0;
  #faultAt = 0;
  readonly #rejected: string[] = [];
  #unlocks = 0;
  #isOver = false;

  constructor(type: LoadType, clients: readonly RedisClient[], tag: string, minReplicas = 0) {
    this.#type = type;
    this.isReplicated = minReplicas > 0;
    this.name = this.isReplicated ? `${type}, minReplicas ${minReplicas}` : type;
    this.#records = clients.map((_, i) => new LeaseRecords(`process-${i + 1}`));
    this.#registries = clients.map(
      (client) =>
        new RedisLockRegistry(client, {
          registryKey: `{${tag}}${this.id}`,
          lockType: lockTypeOf(type, 0),
          expireAfter: TTL,
          minReplicas,
          replicaTimeout: REPLICA_TIMEOUT,
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
    for (const turn of [1, 2]) {
      const key = `kept ${turn}`;
      const access = accessOf(this.#type, turn);
      const lease = await ofFirst.lock(lockFor(first, key, access), access, permitsOf(access, PERMITS));
      this.#kept.push(lease);
      this.#watch(lease);
      this.#calls.push(this.#waitFor(second, ofSecond, key, accessOf(this.#type, turn + 1)));
    }
    this.#registries.forEach((registry, i) => {
      const take = () => this.#takeAgainAndAgain(registry, this.#records[i] as LeaseRecords);
      this.#calls.push(take());
      // Two of one process share a lock that can be shared.
      if (accessOf(this.#type, 0) !== 'exclusive') this.#calls.push(take());
    });
    await until(() => this.#entered.length > 10, { within: SETTLES_WITHIN });
  }

  /** The fault is about to be made. */
  faultBegins(): void {
    this.#faultAt = performance.now();
  }

  /** Both processes ask for a lock that nobody had before the fault, and hold it until the end. */
  callLate(): void {
    const access = accessOf(this.#type, 0);
    this.#registries.forEach((registry, i) => {
      this.#calls.push(this.#waitFor(registry, this.#records[i] as LeaseRecords, 'late', access));
    });
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
    const stays = this.#records.flatMap((records) => records.stays);
    const together = conflicts(stays, { permits: PERMITS }).map((one) => one.together);
    const gaps = this.#entered.slice(1).map((at, i) => at - (this.#entered[i] as number));
    return {
      entries: this.#entered.length,
      pause: Math.round(Math.max(0, ...gaps)),
      wait: Math.round(this.#longestWait),
      double: Math.round(Math.max(0, ...together)),
      learned: this.#lostAt.length > 0 ? Math.round(Math.max(...this.#lostAt) - this.#faultAt) : undefined,
      lost: this.#lasting.filter(({ signal }) => signal.aborted).length,
      lasting: this.#lasting.length,
      rejected: this.#rejected,
      unlocks: this.#unlocks,
      left,
    };
  }

  async #takeAgainAndAgain(registry: RedisLockRegistry, records: LeaseRecords): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      const calledAt = performance.now();
      const access = accessOf(this.#type, turn);
      const options = { signal: this.#leaving.signal, ...permitsOf(access, 1 + (turn % 2)) };
      const lease = await records
        .lock(lockFor(registry, 'busy', access), access, options)
        .catch((error: unknown) => this.#noteRejection(error));
      if (lease === undefined) continue;
      this.#entered.push(performance.now());
      this.#longestWait = Math.max(this.#longestWait, performance.now() - calledAt);
      await new Promise((resolve) => setTimeout(resolve, WORK));
      await records.unlock(lease).catch(() => this.#unlocks++);
    }
  }

  #watch(lease: Lease): void {
    this.#lasting.push(lease);
    lease.signal.addEventListener('abort', () => this.#lostAt.push(performance.now()));
  }

  #noteRejection(error: unknown): void {
    if (!this.#isOver) this.#rejected.push(String(error));
  }

  async #waitFor(registry: RedisLockRegistry, records: LeaseRecords, key: string, access: Access): Promise<void> {
    try {
      const options = { signal: this.#leaving.signal, ...permitsOf(access, PERMITS) };
      const lease = await records.lock(lockFor(registry, key, access), access, options);
      this.#watch(lease);
      await new Promise((resolve) => this.#leaving.signal.addEventListener('abort', resolve));
      await records.unlock(lease);
    } catch (error) {
      this.#noteRejection(error);
    }
  }
}

function permitsOf(access: Access, permits: number): { readonly permits?: number } {
  return access === 'permit' ? { permits } : {};
}

/** A load of each type of lock, and where there are replicas, loads whose acquisitions wait for all of them. */
export function loads({ clients, tag, replicas }: Topology): Load[] {
  const replicated = replicas.length === 0 ? [] : [...DISTINCT_TYPES, ...SHARED_TYPES];
  return [
    ...[...LOCK_TYPES, ...SHARED_TYPES].map((type) => new Load(type, clients, tag)),
    ...replicated.map((type) => new Load(type, clients, tag, replicas.length)),
  ];
}
