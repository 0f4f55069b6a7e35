import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Locks, Release } from './candidate';

/** Milliseconds between the start of the machine's monotonic clock and the start of this process. */
const offset = Math.max(...Array.from({ length: 20 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()));

/** Monotonic ms that all processes of the machine share, so that events of several processes can be ordered. */
export const now = (): number => performance.now() + offset;

/** Maximum difference of `now` between two processes, in ms. */
export const CLOCK_ERROR = 0.05;

const sleep = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

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

/** What one process measured in one window. */
export interface Observation {
  /** Length of the window, in ms, and the time of its end. */
  readonly time: number;
  readonly end: number;
  /** ms of CPU */
  readonly cpu: number;
  /** ms of each cycle of lock and unlock, if the load measures them. */
  readonly durations: readonly number[];
  /** Finished and waiting acquisitions, if the load records them. */
  readonly acquisitions: readonly Acquisition[];
  /** Two callers in one section, or one caller in a section that must stay empty. */
  readonly violations: number;
  /** Of one lock: bytes of heap, or µs. */
  readonly each: Readonly<Record<string, number>>;
}

/** Observes for `ms` a load that runs all the time. `isWarmUp`: the load may run faster than it is measured. */
export type Observe = (ms: number, isWarmUp?: boolean) => Promise<Partial<Observation>>;

/** The observation of the load, with the time and CPU that it took. */
export async function observe(load: Observe, ms: number, isWarmUp = false): Promise<Observation> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const observation = await load(ms, isWarmUp);
  const { user, system } = process.cpuUsage(before);
  const time = performance.now() - startedAt;
  const nothing = { durations: [], acquisitions: [], violations: 0, each: {} };
  return { time, end: now(), cpu: (user + system) / 1000, ...nothing, ...observation };
}

const doNothing: Observe = (ms) => sleep(ms).then(() => ({}));

function can<T>(ability: T | undefined, what: string): T {
  if (ability === undefined) throw new Error(`it cannot ${what}`);
  return ability;
}

/** The names belong to the caller. Each is one piece in memory, as V8 would make it of a concatenation when it is sent. */
const namesOf = (kind: string, count: number): string[] =>
  JSON.parse(JSON.stringify(Array.from({ length: count }, (_, i) => `${kind}-${i}`)));

export interface CyclesSettings {
  readonly callers: number;
  /** Keys of each caller, which locks them in turn; 1 by default. No other caller has them. */
  readonly keysEach?: number;
  /** Locks that many keys at a time, all or nothing. By default one, as a lock of a single key. */
  readonly together?: number;
}

/** Callers that lock and unlock keys of their own in a loop, only while they are observed. */
function cycles(locks: Locks, { callers, keysEach = 1, together }: CyclesSettings): Observe {
  const acquire = together === undefined ? locks.acquire : can(locks.acquireAll, 'lock several keys');
  const keysOf = Array.from({ length: callers }, (_, caller) =>
    namesOf(`key-${caller}`, keysEach).map((name) => (together === undefined ? name : namesOf(name, together))),
  );
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

export interface CallersSettings {
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
function callers(locks: Locks, settings: CallersSettings): Observe {
  const { callers, keys = 1, together, work, workJitter = 0, pause = 0, pauseJitter = 0 } = settings;
  const { permits = 1, readers = 0 } = settings;
  const acquire = acquireOf(locks, settings);
  const ownKeys = Array.from({ length: callers }, (_, caller) => [caller % keys]);
  const waiting = new Set<Acquisition>();
  /** Permits taken of each key. */
  const taken = new Uint32Array(keys);
  let log: Acquisition[] = [];
  let violations = 0;
  let pace = 1;

  const spend = (ms: number, jitter: number): Promise<void> => {
    const time = pace * (ms + Math.random() * jitter);
    return time < 1 ? nextTurn() : sleep(time); // a timer takes 1 ms at least
  };
  const acquireOnce = async (caller: number) => {
    const chosen = together === undefined ? (ownKeys[caller] as number[]) : sample(keys, together);
    const weight = readers > 0 && caller >= readers ? permits : 1;
    const notYet = Number.POSITIVE_INFINITY;
    const acquisition: Acquisition = { caller, requestedAt: now(), enteredAt: notYet, leftAt: notYet };
    // There are many acquisitions: only what differs from the default is sent to the bench.
    if (together !== undefined) acquisition.keys = chosen;
    if (weight !== 1) acquisition.weight = weight;
    waiting.add(acquisition);
    const release = await acquire(chosen, caller);
    acquisition.enteredAt = now();
    waiting.delete(acquisition);
    log.push(acquisition);
    for (const key of chosen) {
      const sum = (taken[key] ?? 0) + weight;
      if (sum > permits) violations++;
      taken[key] = sum;
    }
    await (work === 0 ? undefined : spend(work, workJitter));
    for (const key of chosen) taken[key] = (taken[key] ?? 0) - weight;
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
  return async (ms, isWarmUp = false) => {
    pace = isWarmUp ? WARM_UP_PACE : 1;
    log = [];
    await sleep(ms);
    return { acquisitions: [...log, ...waiting], violations };
  };
}

/** How a caller acquires keys that are given by their numbers. */
function acquireOf(locks: Locks, { keys = 1, together, readers = 0 }: CallersSettings) {
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

/** Locks that are held for the whole window and renewed by the library. */
async function leases(locks: Locks, { keys }: { readonly keys: number }): Promise<Observe> {
  const keep = can(locks.keep, 'renew a lock');
  await Promise.all(namesOf('lease', keys).map((key) => keep(key)));
  return doNothing;
}

const HELD = 'held';

/** Holds the lock of the waiters. */
async function holder(locks: Locks): Promise<Observe> {
  await (locks.keep ?? locks.acquire)(HELD);
  return doNothing;
}

/** Waiters for a lock that is never released. */
function waiters(locks: Locks, { callers }: { readonly callers: number }): Observe {
  let entered = 0;
  for (let i = 0; i < callers; i++) void locks.acquire(HELD).then(() => entered++);
  return (ms) => sleep(ms).then(() => ({ violations: entered }));
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

/** All at the same time. */
const acquireEach = (names: readonly string[], acquire: Locks['acquire']) =>
  Promise.all(names.map((key) => acquire(key)));

async function use(names: readonly string[], acquire: Locks['acquire']): Promise<void> {
  for (const release of await acquireEach(names, acquire)) await release();
}

/** bytes of heap for each lock that is idle after use, each held lock, and each waiter (all of them on one held lock). */
function heap({ acquire, object }: Locks, { locks: count }: { readonly locks: number }): Observe {
  return async () => {
    const [warm, idle, held] = [namesOf('warm', count), namesOf('idle', count), namesOf('held', count)];
    await use(warm, acquire);
    await use(warm, acquire);
    const each: Record<string, number> = {};
    if (object !== undefined) {
      each.idle = await heapFor(count, async () => {
        const objects = idle.map((key) => object(key));
        await use(idle, acquire);
        return objects;
      });
    }
    each.held = await heapFor(count, () => acquireEach(held, acquire));
    each.waiting = await heapFor(count, async () => {
      for (let i = 0; i < count; i++) void acquire(held[0] as string);
    });
    return { each };
  };
}

/** Requests that are made together. */
const BATCH = 1_000;

/** bytes of heap and µs for each lock that is acquired in batches and held, and whose loss somebody listens for. */
function listened(locks: Locks, { locks: count }: { readonly locks: number }): Observe {
  const acquire = locks.acquireListened ?? locks.acquire;
  return async () => {
    const names = namesOf('listened', count);
    await use(namesOf('warm', BATCH), acquire);
    let time = 0;
    const held = await heapFor(count, async () => {
      const startedAt = performance.now();
      const releases: Release[] = [];
      for (let i = 0; i < count; i += BATCH) releases.push(...(await acquireEach(names.slice(i, i + BATCH), acquire)));
      time = performance.now() - startedAt;
      return releases;
    });
    return { each: { held, time: (1000 * time) / count } };
  };
}

const loads = { callers, cycles, heap, holder, leases, listened, waiters };

type SettingsOf<L> = L extends (locks: Locks, settings: infer Settings) => unknown ? Settings : never;

/** The load that a process runs, and its settings. */
export type LoadSpec = {
  [Name in keyof typeof loads]: { readonly load: Name; readonly settings: SettingsOf<(typeof loads)[Name]> };
}[keyof typeof loads];

/** Starts the work of a process; it runs until the process ends. */
export async function begin(locks: Locks, { load, settings }: LoadSpec): Promise<Observe> {
  return (loads[load] as (locks: Locks, settings: unknown) => Observe | Promise<Observe>)(locks, settings);
}
