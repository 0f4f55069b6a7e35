import type { RedisLockRegistryOptions } from '../../lib';
import { type SharedKind, typesOf } from '../../lib/api/lock-types';
import { LOCK_TYPES as PROCESS_TYPES, type LockType as ProcessType } from '../../lib/kinds';
import { Random } from '../random';
import type { ClientTraits } from './client/client-directory';
import { withBlocks } from './plan-blocks';
import { EXTRAS_ON, type Extra } from './plan-extras';
import {
  type Fault,
  type FaultScale,
  type LongOutage,
  MOMENTS,
  type Moment,
  planFault,
  planFaults,
  planMoreFaults,
  planOutage,
} from './plan-faults';
import type { ClockTraits } from './process/simulated-process';
import type { ReplicaTrouble } from './server/replicas';

/** Locks that several callers may have at a time. */
type SharedType = 'semaphore' | 'read-write';

/**
 * `mixed`: the processes take the types of Spring's format in turn, on the same names. They exclude each other.
 * `multi`: locks of several keys, of one type.
 */
export type LockType = ProcessType | 'mixed' | 'multi' | SharedType;

export const LOCK_TYPES: readonly LockType[] = [...PROCESS_TYPES, 'mixed', 'multi', 'semaphore', 'read-write'];

export function isShared(type: LockType): type is SharedType {
  return type === 'semaphore' || type === 'read-write';
}

/** By name: so the order of the table changes no seed. */
const MIXED: readonly ProcessType[] = typesOf('spring').sort();

/** The key of all calls of `once`. */
export const ONCE_KEY = 'task';

/** One acquisition of a caller. Times in ms. */
export interface Round {
  /** Before the call. */
  readonly think: number;
  readonly method: 'lock' | 'tryLock' | 'run';
  /** Of a shared lock: what the caller asks for. */
  readonly kind: SharedKind | undefined;
  /** The number that it gives to a semaphore. */
  readonly permits: number;
  readonly ttl: number | undefined;
  readonly renew: boolean | undefined;
  readonly waitTime: number | undefined;
  readonly minHold: number | undefined;
  /** How many permits of a semaphore it takes. */
  readonly takes: number;
  /** After the call; the signal aborts then, if the caller still waits. */
  readonly abortAfter: number | undefined;
  /** With what it aborts: one of `ABORT_REASONS`. */
  readonly reason: string;
  readonly hold: number;
  /** For how long the task blocks its event loop as soon as it has the lock. */
  readonly block: number;
  /** It computes while it holds the lock: it blocks its event loop for so long, again and again. */
  readonly chunk: number;
  /** A script of the application's runs when it has the lock, or is on its way when it unlocks. */
  readonly evals: 'first' | 'last' | undefined;
  /** It renews its lease once, and does not wait for that. */
  readonly renews: boolean;
  /** It takes the lock from its holder, whose task has so many ms to end. */
  readonly grace?: number;
  /** Before the call it asks the holder to end early. */
  readonly asks?: boolean;
  /** ms after which its task ends when its signal has aborted, or it is asked; `undefined`: it does not look. */
  readonly heeds?: number;
  /** In place of the unlock, it detaches its lease. */
  readonly travels?: Travels;
  /** What happens to the process of the caller at a moment of this acquisition: many faults matter only just then. */
  readonly aimed: AimedFault | undefined;
}

/** What becomes of a lease that is detached. */
export interface Travels {
  /** Those that adopt it, by index: the processes. */
  readonly to: readonly number[];
  /** ms after it was detached. */
  readonly after: number;
  readonly hold: number;
}

export interface AimedFault {
  readonly on: Moment;
  /** ms after the moment. */
  readonly after: number;
  readonly fault: Fault;
}

/** One call of `once`. */
export interface OnceCall {
  readonly process: number;
  readonly at: number;
  readonly waitTime: number | undefined;
  readonly abortAfter: number | undefined;
  /** ms that its task takes. */
  readonly work: number;
  readonly fails: boolean;
}

/** What several processes do with `once`, for one key. */
export interface OncePlan {
  readonly calls: readonly OnceCall[];
  readonly forgets: readonly { readonly process: number; readonly at: number }[];
  readonly keepFor: number;
}

export interface CallerPlan {
  readonly process: number;
  /** Several with `multi` only. */
  readonly keys: readonly string[];
  readonly rounds: readonly Round[];
}

export interface ProcessPlan {
  readonly client: ClientTraits;
  readonly clock: ClockTraits;
  /** How many connections the client has; 1: node-redis' plain client, more: its pool. */
  readonly connections: number;
  /** A pool has a pub/sub connection of the application's. */
  readonly givesSubscriber: boolean;
  /** How often its event loop is blocked just when a renewal was written, for less than its leases have left. */
  readonly blocksAtRenewal: number;
  readonly options: Omit<RedisLockRegistryOptions, 'registryKey'>;
}

/** Everything that one seed decides before the simulation begins. */
export interface Plan {
  readonly seed: number;
  readonly lockType: LockType;
  /** Without faults of the network, the server and the processes. */
  readonly isCalm: boolean;
  readonly messageFaults: { readonly lost: number; readonly doubled: number };
  /** How many of the messages about a lock that was taken are lost, when they are said first, and nothing else is wrong. */
  readonly lostWords?: number;
  /** The clock of the server may go on between two readings in one command, as with Redis up to 7.0. */
  readonly ticks: boolean;
  /** Of the replicas of the server. */
  readonly replicas: readonly ReplicaTrouble[];
  readonly processes: readonly ProcessPlan[];
  readonly callers: readonly CallerPlan[];
  readonly once?: OncePlan;
  readonly faults: readonly Fault[];
  /** Those that it may have; and the one that it is about. */
  readonly extras: readonly Extra[];
  readonly extra?: Extra;
  /** ms in which everybody who waits has a turn, from a time on, though messages do not arrive: where all holds are short. */
  readonly turns?: { readonly within: number; readonly from: number };
}

export function keysOf({ callers, once }: Plan): string[] {
  return [...new Set([...callers.flatMap(({ keys }) => keys), ...(once === undefined ? [] : [ONCE_KEY])])];
}

/** Also those that come at a moment of an acquisition. */
export function faultsOf({ callers, faults }: Plan): Fault[] {
  return [...faults, ...callers.flatMap(({ rounds }) => rounds.flatMap(({ aimed }) => aimed?.fault ?? []))];
}

export function planOf(seed: number, lockType: LockType, extras: readonly Extra[] = EXTRAS_ON): Plan {
  const random = new Random(seed, 'plan');
  const isCalm = random.chance(1 / 3);
  const hasMessageFaults = !isCalm && random.chance(0.25);
  const fencing = random.weighted({ all: 6, none: 2, some: 1 });
  const processes = Array.from({ length: random.whole(2, 4) }, (_, index) =>
    planProcess(random, {
      lockType: processType(lockType, seed, index),
      fencing: fencing === 'all' || (fencing === 'some' && random.chance(0.5)),
      isCalm,
    }),
  );
  const keys = lockType === 'multi' ? ['a', 'b', 'c'] : random.chance(0.7) ? ['a'] : ['a', 'b'];
  // A machine whose wall clock is set back cannot tell that it was suspended.
  const clockTrouble = random.pick(['suspend', 'wall clock'] as const);
  const scale: FaultScale = { processes: processes.length, keys, isCalm, clockTrouble };
  const life = random.pick(['short', 'long', 'mixed'] as const);
  // A stream of its own: what a seed decided before stays as it was.
  const holds = new Random(seed, 'minHold');
  const holding = holds.chance(0.2) ? holds : undefined;
  const sharing = new Random(seed, 'sharing');
  const permits = sharing.whole(1, 3);
  const given = new Random(seed, 'permits');
  const givesOthers = given.chance(0.5);
  const kindOf = kindsOf(lockType, sharing);
  const weights = new Random(seed, 'weights');
  const isHeavy = lockType === 'semaphore' && weights.chance(0.3);
  const takes = (most: number): number => (isHeavy ? weights.whole(1, most) : 1);
  const callers = processes.flatMap(({ options }, process) =>
    Array.from({ length: random.whole(1, 3) }, () =>
      planCaller(random, {
        process,
        of: lockType === 'multi' ? someOf(keys, random) : [random.pick(keys)],
        permits: () => (givesOthers ? given.whole(1, 3) : permits),
        life,
        holding,
        kindOf,
        takes,
        expireAfter: options.expireAfter as number,
        ...scale,
      }),
    ),
  );
  const busy = new Random(seed, 'busy');
  const evals = new Random(seed, 'evals');
  const trouble = new Random(seed, 'trouble');
  const repeats = !isCalm && trouble.chance(0.25);
  const outage = !isCalm && trouble.chance(0.05) ? planOutage(trouble) : undefined;
  const pollers = new Random(seed, 'pollers').chance(0.15);
  const computing = new Random(seed, 'computing');
  const computes = computing.chance(0.15) ? computing.pick(['in chunks', 'at renewals'] as const) : undefined;
  return withBlocks({
    seed,
    lockType,
    extras,
    isCalm,
    messageFaults: {
      lost: hasMessageFaults ? random.between(0, 0.3) : 0,
      doubled: hasMessageFaults ? random.between(0, 0.3) : 0,
    },
    ticks: false,
    replicas: [],
    processes: processes.map(({ client, options, ...one }) => ({
      ...one,
      client: { ...client, repeats },
      options: pollers ? { ...options, sharedWithPollers: true } : options,
      blocksAtRenewal: computes === 'at renewals' ? 0.4 : 0,
    })),
    callers: (computes
      ? callers.map((caller, index) => {
          // Two tasks that compute without a pause would hold up the event loop together.
          const isOnly = callers.findIndex(({ process }) => process === caller.process) === index;
          const longest = isOnly && computes === 'in chunks' ? (lockType === 'multi' ? 0.2 : 0.3) : 0;
          return computed(caller, processes, computing, longest);
        })
      : busy.chance(0.25) || (pollers && !isCalm)
        ? callers.flatMap((caller) => crowdOf(caller, busy, evals))
        : callers
    )
      .map((caller) => (repeats && lockType !== 'multi' ? withScripts(caller, trouble) : caller))
      .concat(outage === undefined ? [] : callersDuring(outage, callers, trouble)),
    faults: [
      ...planFaults(random, scale),
      ...(isCalm ? [] : planMoreFaults(new Random(seed, 'more faults'), scale, pollers)),
      ...(outage === undefined ? [] : [outage]),
    ].sort((a, b) => a.at - b.at),
  });
}

/** Shared locks do not depend on the lock type. */
function processType(type: LockType, seed: number, index: number): ProcessType {
  if (isShared(type)) return 'spin';
  if (type === 'multi') return PROCESS_TYPES[seed % PROCESS_TYPES.length] as ProcessType;
  return type === 'mixed' ? (MIXED[(seed + index) % MIXED.length] as ProcessType) : type;
}

function someOf(keys: readonly string[], random: Random): string[] {
  const some = keys.filter(() => random.chance(0.6));
  return some.length === 0 ? [random.pick(keys)] : some;
}

/** What the next caller asks for. */
function kindsOf(type: LockType, random: Random): () => SharedKind | undefined {
  if (type === 'semaphore') return () => 'semaphore';
  const writers = random.pick([0.15, 0.5]);
  return () => (type !== 'read-write' ? undefined : random.chance(writers) ? 'write' : 'read');
}

interface ProcessTraits {
  readonly lockType: ProcessType;
  readonly fencing: boolean;
  readonly isCalm: boolean;
}

function planProcess(random: Random, { lockType, fencing, isCalm }: ProcessTraits): ProcessPlan {
  const connections = random.chance(0.8) ? 1 : random.whole(2, 3);
  return {
    connections,
    givesSubscriber: random.chance(0.7),
    blocksAtRenewal: 0,
    client: {
      delays: isCalm
        ? { least: 0.1, jitter: 1 }
        : { least: random.pick([0.05, 0.3, 2]), jitter: random.pick([0.5, 3, 20]) },
      disableOfflineQueue: random.chance(0.25),
      repeats: false,
      reconnectAfter: random.pick([20, 100, 500]),
    },
    clock: { rate: isCalm ? 1 : random.between(0.9997, 1.0003), timerJitter: isCalm ? 0 : random.pick([0, 0.5]) },
    options: {
      lockType,
      fencing,
      expireAfter: random.pick([600, 1_500, 30_000]),
      commandTimeout: random.pick([1_000, 2_000, 5_000]),
      unavailableAfter: random.pick([2_000, 4_000, 10_000]),
      idleBetweenTries: random.pick([50, 100]),
      fairLockWaitTimeout: random.pick([1_000, 3_000]),
      ...(random.chance(0.15) ? { handOver: 0 } : {}),
    },
  };
}

interface CallerScale extends FaultScale {
  readonly process: number;
  /** The keys of the caller. */
  readonly of: readonly string[];
  readonly permits: () => number;
  readonly life: 'short' | 'long' | 'mixed';
  /** For a seed with `minHold`. */
  readonly holding: Random | undefined;
  readonly kindOf: () => SharedKind | undefined;
  readonly takes: (most: number) => number;
  /** ms; the ttl of a round without one. */
  readonly expireAfter: number;
}

function planCaller(random: Random, scale: CallerScale): CallerPlan {
  const { process, of, life, isCalm, holding, kindOf, permits, takes, expireAfter } = scale;
  const rounds = Array.from({ length: random.whole(1, 5) }, (): Round => {
    const number = permits();
    const method = random.weighted({ lock: 5, tryLock: 3, run: 2 });
    const isLong = life === 'long' || (life === 'mixed' && random.chance(0.5));
    const isFixed = random.chance(0.5);
    const waits = method !== 'tryLock' || random.chance(0.5);
    const abortAfter = random.chance(0.2) ? random.between(0, random.pick([3, 50, 1_500])) : undefined;
    const think = random.chance(0.3) ? random.between(0, 2_500) : random.between(0, 150);
    const ttl = isFixed ? (isLong ? 30_000 : random.pick([60, 300, 900, 2_000])) : undefined;
    const mostHeld = Math.min(ttl ?? expireAfter, 1_500);
    return {
      think,
      method,
      kind: kindOf(),
      permits: number,
      takes: takes(number),
      ttl,
      renew: isFixed && random.chance(0.2) ? true : undefined,
      waitTime:
        random.chance(0.4) && waits
          ? random.pick([5, 100, 700, 3_000, 8_000])
          : waits && method === 'tryLock'
            ? 2_000
            : undefined,
      minHold: holding?.chance(0.5) ? holding.between(0, mostHeld) : undefined,
      abortAfter,
      reason: 'error',
      hold: random.pick([
        0,
        random.between(0, 5),
        random.between(0, 50),
        random.between(0, 400),
        random.between(0, 3_000),
      ]),
      block: !isCalm && random.chance(0.07) ? random.between(50, 1_500) : 0,
      chunk: 0,
      evals: undefined,
      renews: false,
      aimed: random.chance(0.15) ? planAimed(random, scale, abortAfter) : undefined,
    };
  });
  return { process, keys: of, rounds };
}

/** Several callers in its place, which follow each other closely: so locks are passed on within a process. */
function crowdOf({ rounds, ...caller }: CallerPlan, random: Random, evals: Random): CallerPlan[] {
  return Array.from({ length: random.whole(2, 4) }, (_, index) => ({
    ...caller,
    rounds: Array.from({ length: random.whole(3, 10) }, (_round, position) => ({
      ...random.pick(rounds),
      think: random.between(0, 5),
      hold: random.pick([0, random.between(0, 3), random.between(0, 30)]),
      evals: evals.chance(0.15) ? 'last' : undefined,
      aimed: index === 0 ? rounds[position]?.aimed : undefined,
    })),
  }));
}

/** Renewed leases that last for several renewals, while tasks compute under them. */
function computed(caller: CallerPlan, processes: readonly ProcessPlan[], random: Random, longest: number): CallerPlan {
  const { expireAfter = 60_000 } = processes[caller.process]?.options ?? {};
  const ttl = Math.min(expireAfter, 1_500);
  return {
    ...caller,
    rounds: caller.rounds.slice(0, 2).map((round) => ({
      ...round,
      ttl: expireAfter > ttl ? ttl : undefined,
      renew: true,
      minHold: undefined,
      block: 0,
      // A renewal that is due just after a chunk begins is written when the one after it has ended. Renewals of several
      // keys go as one script, which the server may not know yet: its text is written another chunk later.
      chunk: longest > 0 ? ttl * random.between(0.05, longest) : 0,
      hold: ttl * random.between(0.5, 3),
    })),
  };
}

/** Scripts run under its leases. */
function withScripts({ rounds, ...caller }: CallerPlan, random: Random): CallerPlan {
  return { ...caller, rounds: rounds.map((round) => (random.chance(0.4) ? { ...round, evals: 'first' } : round)) };
}

/** Many calls are given up while Redis is away, and some more follow. */
function callersDuring({ duration }: LongOutage, callers: readonly CallerPlan[], random: Random): CallerPlan[] {
  const [of] = callers;
  const [round] = of?.rounds ?? [];
  if (of === undefined || round === undefined) return [];
  return ['away 1', 'away 2', 'away 3'].map((key) => ({
    process: of.process,
    keys: [key],
    rounds: Array.from({ length: duration / 600 }, () => ({
      ...round,
      method: 'lock',
      think: random.between(50, 1_000),
      ttl: random.pick([undefined, 30_000]),
      renew: undefined,
      minHold: undefined,
      waitTime: random.pick([5, 100, 700]),
      abortAfter: undefined,
      hold: 0,
      block: 0,
      chunk: 0,
      evals: undefined,
      aimed: undefined,
    })),
  }));
}

function planAimed(random: Random, scale: CallerScale, abortAfter: number | undefined): AimedFault {
  const { process } = scale;
  const isClose = random.chance(scale.isCalm ? 0.5 : 0.2);
  const isEviction = !isClose && (scale.isCalm || random.chance(0.3));
  const after = random.pick([random.between(0, 3), random.between(0, 30)]);
  if (isEviction) {
    // A moment after the wait is given up, what it left in Redis is not removed yet.
    const on = abortAfter === undefined ? random.pick(MOMENTS) : 'call';
    return { on, after: after + (abortAfter ?? 0), fault: { kind: 'evict', at: 0, process } };
  }
  const fault: Fault = isClose
    ? { kind: 'close', at: 0, process, timeout: random.pick([100, 1_000, 10_000]) }
    : planFault(random, scale);
  const ofProcess = 'process' in fault ? { ...fault, process } : fault;
  return { on: random.pick(MOMENTS), after, fault: ofProcess };
}
