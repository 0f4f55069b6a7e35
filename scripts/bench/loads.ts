import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Locks, Release } from './candidate';

/** Milliseconds between the start of the machine's monotonic clock and the start of this process. */
const offset = Math.max(...Array.from({ length: 20 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()));

/** Monotonic ms that all processes of the machine share, so that events of several processes can be ordered. */
const now = (): number => performance.now() + offset;

/** Maximum difference of `now` between two processes, in ms. */
export const CLOCK_ERROR = 0.05;

/** One acquisition by one caller. Times are those of `now`; Infinity: not reached yet. */
export interface Acquisition {
  readonly caller: number;
  /** Numbers of the keys, if the load does not give each caller one key by its number. */
  keys?: readonly number[];
  /** Permits that it takes; 1 by default. */
  weight?: number;
  readonly requestedAt: number;
  enteredAt: number;
  /** Before the release is sent. */
  leftAt: number;
}

/** What a load measures in one window, if it does. */
interface Observed {
  /** ms of each cycle of lock and unlock, or of each call of `once`. */
  readonly durations?: readonly number[];
  /** Finished and waiting ones. */
  readonly acquisitions?: readonly Acquisition[];
  /** Of one lock: bytes of heap, or µs. */
  readonly each?: { readonly [Name in 'idle, B' | 'held, B' | 'waiter, B' | 'heap, B' | 'time, µs']?: number };
}

/** Observes for `ms` a load that runs all the time. `isWarmUp`: the load may run faster than it is measured. */
export type Observe = (ms: number, isWarmUp: boolean) => Promise<Observed>;

export interface Observation extends Observed {
  /** Length of the window, in ms, and the time of its end. */
  readonly time: number;
  readonly end: number;
  /** ms */
  readonly cpu: number;
}

/** The observation of the load, with the time and CPU that it took. */
export async function observe(load: Observe, ms: number, isWarmUp: boolean): Promise<Observation> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const observed = await load(ms, isWarmUp);
  const { user, system } = process.cpuUsage(before);
  return { time: performance.now() - startedAt, end: now(), cpu: (user + system) / 1000, ...observed };
}

function can<T>(ability: T | undefined, what: string): T {
  if (ability === undefined) throw new Error(`it cannot ${what}`);
  return ability;
}

/** The names belong to the caller. Each is one piece in memory, as V8 would make it of a concatenation when it is sent. */
const namesOf = (kind: string, count: number): string[] =>
  JSON.parse(JSON.stringify(Array.from({ length: count }, (_, i) => `${kind}-${i}`)));

export interface Cycles {
  readonly load: 'cycles';
  readonly callers: number;
  /** Keys of each caller, which locks them in turn; 1 by default. No other caller has them. */
  readonly keysEach?: number;
  /** Locks that many keys at a time, all or nothing. By default one, as a lock of a single key. */
  readonly together?: number;
  /** A key is a semaphore that this many others have, with one permit more. By default a key is a lock. */
  readonly holders?: number;
}

/** Callers that lock and unlock keys of their own in a loop, only while they are observed. */
async function cycles(locks: Locks, { callers, keysEach = 1, together, holders }: Cycles): Promise<Observe> {
  const acquireOne = holders === undefined ? locks.acquire : permitOf(locks, holders + 1);
  const acquire = together === undefined ? acquireOne : can(locks.acquireAll, 'lock several keys');
  const keysOf = Array.from({ length: callers }, (_, caller) =>
    namesOf(`key-${caller}`, keysEach).map((name) => (together === undefined ? name : namesOf(name, together))),
  );
  if (holders !== undefined) for (const key of keysOf.flat(2)) await acquireEach(Array(holders).fill(key), acquireOne);
  /** Continues where the window before ended. */
  const cyclesOf = new Uint32Array(callers);
  return async (ms) => {
    const durations: number[] = [];
    const end = performance.now() + ms;
    const loop = async (keys: readonly (string | string[])[], caller: number) => {
      let cycle = cyclesOf[caller] ?? 0;
      for (let startedAt = performance.now(), endedAt = 0; startedAt < end; startedAt = endedAt) {
        const release = await acquire(keys[cycle++ % keys.length] as string & string[]);
        await release();
        endedAt = performance.now();
        durations.push(endedAt - startedAt);
      }
      cyclesOf[caller] = cycle;
    };
    await Promise.all(keysOf.map(loop));
    return { durations };
  };
}

function permitOf(locks: Locks, permits: number): Locks['acquire'] {
  const acquirePermit = can(locks.acquirePermit, 'give permits');
  return (key) => acquirePermit(key, permits);
}

export interface Callers {
  readonly load: 'callers';
  readonly callers: number;
  /** Number of keys that the callers are distributed over; 1 by default. */
  readonly keys?: number;
  /** Each acquisition takes that many keys, chosen at random, all or nothing. By default the key of the caller. */
  readonly together?: number;
  /** ms in the section, and a random addition of up to `workJitter`. 0: one microtask, in which an overlap would show. */
  readonly work: number;
  readonly workJitter?: number;
  /** How many may be inside at a time; 1 by default. */
  readonly permits?: number;
  /** The first callers of a process that take one permit as readers, while the others take all; by default none. */
  readonly readers?: number;
  /** ms from a release to the next request, and a random addition of up to `pauseJitter`; 0 by default. */
  readonly pause?: number;
  readonly pauseJitter?: number;
}

/** During the warm-up, work and pauses take that part of their time, so that the same code runs more often. */
const WARM_UP_PACE = 0.1;

/** Callers that lock, work and unlock in a loop. Every acquisition is recorded. */
function callers(locks: Locks, load: Callers): Observe {
  const {
    callers,
    keys = 1,
    together,
    work,
    workJitter = 0,
    pause = 0,
    pauseJitter = 0,
    permits = 1,
    readers = 0,
  } = load;
  const acquire = acquireOf(locks, load);
  const ownKeys = Array.from({ length: callers }, (_, caller) => [caller % keys]);
  const waiting = new Set<Acquisition>();
  let log: Acquisition[] = [];
  let pace = 1;

  const spend = (ms: number, jitter: number): Promise<void> => {
    const time = pace * (ms + Math.random() * jitter);
    return time < 1 ? nextTurn() : sleep(time); // a timer takes 1 ms at least
  };
  const acquireOnce = async (caller: number) => {
    const chosen = together === undefined ? (ownKeys[caller] as number[]) : sample(keys, together);
    const notYet = Number.POSITIVE_INFINITY;
    const acquisition: Acquisition = { caller, requestedAt: now(), enteredAt: notYet, leftAt: notYet };
    // There are many acquisitions: only what differs from the default is sent to the bench.
    if (together !== undefined) acquisition.keys = chosen;
    if (readers > 0 && caller >= readers) acquisition.weight = permits;
    waiting.add(acquisition);
    const release = await acquire(chosen, caller);
    acquisition.enteredAt = now();
    waiting.delete(acquisition);
    log.push(acquisition);
    await (work === 0 ? undefined : spend(work, workJitter));
    acquisition.leftAt = now();
    await release();
  };
  const loop = async (caller: number) => {
    for (;;) {
      await acquireOnce(caller);
      if (pause > 0) await spend(pause, pauseJitter);
    }
  };
  // A rejection is not handled: it ends the process, and with it the measurement.
  for (let caller = 0; caller < callers; caller++) void loop(caller);
  return async (ms, isWarmUp) => {
    pace = isWarmUp ? WARM_UP_PACE : 1;
    log = [];
    await sleep(ms);
    return { acquisitions: [...log, ...waiting] };
  };
}

/** How a caller acquires keys that are given by their numbers. */
function acquireOf(locks: Locks, { keys = 1, together, readers = 0 }: Callers) {
  const names = namesOf('key', keys);
  const acquireAll = together === undefined ? undefined : can(locks.acquireAll, 'lock several keys');
  const acquireShared = readers === 0 ? undefined : can(locks.acquireShared, 'tell readers from writers');
  return (chosen: readonly number[], caller: number): Promise<Release> => {
    if (acquireAll !== undefined) return acquireAll(chosen.map((key) => names[key] as string));
    const name = names[chosen[0] as number] as string;
    return acquireShared !== undefined && caller < readers ? acquireShared(name) : locks.acquire(name);
  };
}

/** `count` different numbers below `limit`. */
function sample(limit: number, count: number): number[] {
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(Math.floor(Math.random() * limit));
  return [...chosen];
}

interface Leases {
  readonly load: 'leases';
  readonly keys: number;
  /** Whether they last so long that the library has to renew them. */
  readonly isRenewed: boolean;
}

/** Locks that are held all the time. Callers of other processes who ask for the same keys have to wait. */
async function leases(locks: Locks, { keys, isRenewed }: Leases): Promise<Observe> {
  const acquire = isRenewed ? can(locks.keep, 'renew a lock') : locks.acquire;
  const requestedAt = now();
  await acquireEach(namesOf('key', keys), acquire);
  const held = {
    caller: 0,
    keys: [...Array(keys).keys()],
    requestedAt,
    enteredAt: now(),
    leftAt: Number.POSITIVE_INFINITY,
  };
  return (ms) => sleep(ms, { acquisitions: [held] });
}

/** Keeps the measured objects reachable until the process ends. */
const kept: unknown[] = [];

async function heapUsed(): Promise<number> {
  // Timers, finalizers and settled promises free their memory only after a turn of the event loop.
  for (let i = 0; i < 4; i++) {
    await nextTurn();
    global.gc?.();
  }
  return process.memoryUsage().heapUsed;
}

async function heapFor(count: number, make: () => Promise<unknown>): Promise<number> {
  const before = await heapUsed();
  kept.push(await make());
  return Math.max(0, (await heapUsed()) - before) / count;
}

/** Requests that are made together. */
const BATCH = 1_000;

async function acquireEach(names: readonly string[], acquire: Locks['acquire']): Promise<Release[]> {
  const releases: Release[] = [];
  for (let i = 0; i < names.length; i += BATCH)
    releases.push(...(await Promise.all(names.slice(i, i + BATCH).map((key) => acquire(key)))));
  return releases;
}

async function use(names: readonly string[], acquire: Locks['acquire']): Promise<void> {
  for (const release of await acquireEach(names, acquire)) await release();
}

interface Heap {
  readonly load: 'heap';
  /** Many: what V8 needs for its code counts too. */
  readonly locks: number;
  readonly waiters: number;
}

/** What the bench itself keeps of a held lock: a function that refers to what the library has returned. */
async function releaseOf(lease: { key: string }): Promise<Release> {
  await nextTurn();
  return () => lease.key;
}

/**
 * bytes of heap for each lock that is idle after use, each held lock (without the function of the bench that releases it), and
 * each waiter (all of them on one held lock).
 */
function heap({ acquire, object }: Locks, { locks: count, waiters }: Heap): Observe {
  return async () => {
    const [warm, idle, names] = [namesOf('warm', count), namesOf('idle', count), namesOf('held', count)];
    await use(warm, acquire);
    await use(warm, acquire);
    const makeIdle = async () => {
      const objects = idle.map((key) => object?.(key));
      await use(idle, acquire);
      return objects;
    };
    const lease = { key: 'one' };
    const own = await heapFor(count, () => Promise.all(names.map(() => releaseOf(lease))));
    const each = {
      'idle, B': object === undefined ? Number.NaN : await heapFor(count, makeIdle),
      'held, B': (await heapFor(count, () => acquireEach(names, acquire))) - own,
      'waiter, B': await heapFor(waiters, async () => {
        for (let i = 0; i < waiters; i++) void acquire(names[0] as string);
      }),
    };
    return { each };
  };
}

interface Listened {
  readonly load: 'listened';
  readonly locks: number;
}

/** bytes of heap and µs for each lock that is held, and whose loss somebody listens for. */
function listened({ acquire, acquireListened = acquire }: Locks, { locks: count }: Listened): Observe {
  return async () => {
    const names = namesOf('listened', count);
    await use(namesOf('warm', BATCH), acquireListened);
    let time = 0;
    const heap = await heapFor(count, async () => {
      const startedAt = performance.now();
      const releases = await acquireEach(names, acquireListened);
      time = performance.now() - startedAt;
      return releases;
    });
    return { each: { 'heap, B': heap, 'time, µs': (1000 * time) / count } };
  };
}

interface Once {
  readonly load: 'once';
  readonly callers: number;
  /** ms that the task takes, and from the calls for one key to those for the next one. */
  readonly work: number;
  readonly period: number;
}

/** In all processes at the same time, all callers want the result of one task. Fails if two ran. */
function once(locks: Locks, { callers, work, period }: Once): Observe {
  const call = can(locks.once, 'run a task once for all');
  return async (ms) => {
    const durations: number[] = [];
    for (const end = now() + ms; ; ) {
      const number = Math.ceil(now() / period);
      if (number * period >= end) return { durations };
      await sleep(number * period - now());
      const task = () => sleep(work, `${process.pid}`);
      const ask = async () => {
        const startedAt = now();
        const result = await call(`task-${number}`, task);
        durations.push(now() - startedAt);
        return result;
      };
      const results = new Set(await Promise.all(Array.from({ length: callers }, ask)));
      if (results.size > 1) throw new Error(`its task ran ${results.size} times`);
    }
  };
}

/** The load that a process runs. */
export type LoadSpec = Cycles | Callers | Leases | Heap | Listened | Once;

/** Starts the work of a process; it runs until the process ends. */
export async function begin(locks: Locks, spec: LoadSpec): Promise<Observe> {
  if (spec.load === 'cycles') return cycles(locks, spec);
  if (spec.load === 'callers') return callers(locks, spec);
  if (spec.load === 'leases') return leases(locks, spec);
  if (spec.load === 'once') return once(locks, spec);
  return spec.load === 'heap' ? heap(locks, spec) : listened(locks, spec);
}
