import { LOCK_TYPES, TRAVELLING_TYPES, traitsOf } from '../../lib/api/lock-types';
import { ARRIVES_WITHIN, PROVED_EVERY } from '../../lib/redis/proof';
import { Random } from '../random';
import type { CallerPlan, LockType, OnceCall, OncePlan, Plan, Round } from './plan';
import { PLAIN } from './plan-blocks';
import type { Fault } from './plan-faults';

interface ExtraTraits {
  /** Of all seeds, where nothing else is asked for. */
  readonly isOn: boolean;
  readonly types: readonly LockType[];
  /** In place of all else that the seed has. */
  readonly plan: (plan: Plan, random: Random) => Plan;
}

/**
 * ms in which each of two processes has a turn: a poll comes after 1 s at the latest, and a slice takes 50 ms. One that polls
 * may be late for the end of more slices where there are more to have the next one: so each other process adds some.
 */
const TURN_WITHIN = 4_000;
const TURN_OF_ANOTHER = 1_000;

/**
 * Shared locks have a queue, which gives everybody a turn soon. Until a process that no message reaches finds that out, by
 * a proof and by the poll after that, each of its turns takes the time of a poll: so this is from then on.
 */
const QUEUED_TURN_WITHIN = 2_000;
const FOUND_OUT_WITHIN = PROVED_EVERY + ARRIVES_WITHIN + 1_000;

/** ms for which processes are busy. */
const BUSY_FOR = 9_000;

/** The error of a script on a server that has no key of it any more. */
const GONE = 'ttempted to access a non local key in a cluster node script: ';

const SHARED: readonly LockType[] = ['semaphore', 'read-write'];
const LISTENING: readonly LockType[] = [...TRAVELLING_TYPES.filter((type) => !traitsOf(type).polls), ...SHARED];

/** Messages do not arrive: the client believes in a connection that the server has, or has not; or the server was demoted. */
const DEAF = [
  { isCounted: true, hears: false, answers: false },
  { isCounted: false, hears: false, answers: false },
  { isCounted: false, hears: false, answers: true },
] as const;

/** A replica passes on what is published at its master, which does not count who listens there. */
const AT_A_REPLICA = { isCounted: false, hears: true, answers: true } as const;

/** Faults that have a plan of their own, with a switch each. */
const EXTRAS = {
  'half open': { isOn: true, types: LISTENING, plan: (plan, random) => halfOpen(plan, random, random.pick(DEAF)) },
  'listens at a replica': {
    isOn: true,
    types: LISTENING,
    plan: (plan, random) => halfOpen(plan, random, AT_A_REPLICA),
  },
  'slot moves': {
    isOn: true,
    types: SHARED,
    plan: (plan, random) => slotMoves(plan, random, `ERR Script a${GONE}f_1, on @user_script:1.`),
  },
  'slot moves on Valkey 9.1': {
    isOn: true,
    types: SHARED,
    plan: (plan, random) => slotMoves(plan, random, `ERR A${GONE}on @user_script:1.`),
  },
  'callers of once leave': {
    isOn: true,
    types: LOCK_TYPES,
    plan: (plan, random) => onceAlone(plan, leavers(plan, random)),
  },
  'forgotten while it runs': {
    isOn: true,
    types: LOCK_TYPES,
    plan: (plan, random) => onceAlone(plan, forgets(plan, random)),
  },
  replaced: { isOn: true, types: TRAVELLING_TYPES, plan: replaced },
  'once in trouble': { isOn: true, types: LOCK_TYPES, plan: onceInTrouble },
} as const satisfies Record<string, ExtraTraits>;

export type Extra = keyof typeof EXTRAS;

const ALL: Readonly<Record<Extra, ExtraTraits>> = EXTRAS;

export const EXTRA_NAMES = Object.keys(EXTRAS) as Extra[];

export const EXTRAS_ON: readonly Extra[] = EXTRA_NAMES.filter((name) => ALL[name].isOn);

/** In one of eight seeds of its types; `undefined`: this seed has none. */
export function withExtra(plan: Plan): Plan | undefined {
  for (const name of plan.extras) {
    const random = new Random(plan.seed, name);
    if (ALL[name].types.includes(plan.lockType) && random.chance(1 / 8))
      return { ...ALL[name].plan(plan, random), extra: name };
  }
  return undefined;
}

/** Nothing else happens, so that nothing else can explain what goes wrong. */
function quietly(plan: Plan, callers: readonly CallerPlan[], faults: readonly Fault[]): Plan {
  return {
    ...plan,
    isCalm: true,
    messageFaults: { lost: 0, doubled: 0 },
    processes: plan.processes.map((one) => ({
      ...one,
      blocksAtRenewal: 0,
      client: { ...one.client, repeats: false },
      options: { ...one.options, sharedWithPollers: false },
    })),
    callers,
    faults,
  };
}

/** `each` in these processes, and the same for all: as many rounds as fill the time, each of which holds for `most` ms at most. */
function busyCallers(
  plan: Plan,
  random: Random,
  { processes, each, ms, most }: { processes: readonly number[]; each: number; ms: number; most: number },
): CallerPlan[] {
  const [{ keys = ['a'] } = {}] = plan.callers;
  const [like] = plan.callers.flatMap(({ rounds }) => rounds);
  if (like === undefined) return [];
  const permits = plan.lockType === 'semaphore' ? 2 : 1;
  const rounds = Math.ceil((ms * permits * 2) / (most * each * processes.length));
  const round = (): Round => ({
    ...like,
    ...PLAIN,
    ttl: undefined,
    kind: plan.lockType === 'read-write' ? (random.chance(0.5) ? 'write' : 'read') : like.kind,
    permits,
    chunk: 0,
    renews: false,
    think: random.between(0, 3),
    hold: random.between(1, most),
  });
  return processes.flatMap((process) =>
    Array.from({ length: each }, () => ({
      process,
      keys: keys.slice(0, 1),
      rounds: Array.from({ length: rounds }, round),
    })),
  );
}

type Listening = (typeof DEAF)[number] | typeof AT_A_REPLICA;

/** All processes, or two, are busy with one lock, and one of them does not listen as it thinks. */
function halfOpen(plan: Plan, random: Random, how: Listening): Plan {
  const process = random.whole(0, plan.processes.length - 1);
  const at = random.between(300, 1_000);
  const all = plan.processes.map((_, index) => index);
  const processes = random.chance(0.5) ? all : [process, (process + 1) % all.length];
  const callers = busyCallers(plan, random, { processes, each: 3, ms: BUSY_FOR, most: 30 });
  const faults: Fault[] = [{ kind: 'half open', at, process, duration: BUSY_FOR, ...how }];
  return {
    ...quietly(plan, callers, faults),
    turns: SHARED.includes(plan.lockType)
      ? { within: QUEUED_TURN_WITHIN, from: at + FOUND_OUT_WITHIN }
      : { within: TURN_WITHIN + TURN_OF_ANOTHER * (processes.length - 2), from: 0 },
  };
}

/** The keys of a lock move to another node and back, several times, while all processes take it in turn. */
function slotMoves(plan: Plan, random: Random, text: string): Plan {
  const pause = random.between(5, 60);
  const faults = Array.from({ length: 8 }, (_, i): Fault => ({ kind: 'slot move', at: 200 + i * 500, pause, text }));
  const processes = plan.processes.map((_, index) => index);
  return quietly(plan, busyCallers(plan, random, { processes, each: 2, ms: 4_500, most: 40 }), faults);
}

/** Callers of one key take it from each other, and ask for it. All that the seed has besides may come between. */
function replaced(plan: Plan, random: Random): Plan {
  const lost = plan.isCalm || random.chance(0.5) ? 0 : random.between(0, 0.25);
  // A task that does not look at its signal runs on after a short one.
  const grace = random.pick([300, 5_000, 5_000]);
  const round = (like: Round): Round => ({
    ...like,
    ...PLAIN,
    ttl: undefined,
    chunk: 0,
    method: random.pick(['lock', 'tryLock', 'run'] as const),
    think: random.between(0, 200),
    waitTime: random.pick([300, 3_000]),
    abortAfter: random.chance(0.2) ? random.between(0, 100) : undefined,
    hold: random.between(0, random.pick([10, 600])),
    asks: random.chance(0.2),
    ...(random.chance(0.6) ? { grace } : {}),
    ...(random.chance(0.9) ? { heeds: random.between(0, 60) } : {}),
  });
  const inbox = random.chance(0.7);
  const replacing = {
    ...plan,
    messageFaults: { lost, doubled: lost === 0 ? 0 : random.between(0, 0.3) },
    processes: plan.processes.map(({ options, ...one }) => ({ ...one, options: { ...options, inbox } })),
    callers: plan.callers.map(({ rounds, ...caller }) => ({
      ...caller,
      keys: ['a'],
      rounds: rounds.flatMap((like) => [{ ...round(like), aimed: like.aimed }, round(like)]),
    })),
    faults: plan.faults.filter(({ kind }) => kind !== 'replace'),
  };
  return lost === 0 && random.chance(0.5) ? { ...replacing, lostWords: random.between(0.1, 0.5) } : replacing;
}

function onceAlone(plan: Plan, once: OncePlan): Plan {
  return { ...quietly(plan, [], []), once };
}

/** ms from one time that all want the result to the next one: it is not kept for so long. */
const AGAIN = 5_000;

const PATIENT = { waitTime: undefined, abortAfter: undefined, fails: false } as const;

/**
 * Another process has the lock, and its task fails. The first caller here leaves meanwhile, and those that joined it stay.
 * In the end the first one leaves while its own task runs, which fails after that.
 */
function leavers({ processes }: Plan, random: Random): OncePlan {
  const calls = [20, AGAIN, 2 * AGAIN].flatMap((at): OnceCall[] => {
    const busy = random.whole(0, processes.length - 1);
    const process = (busy + 1) % processes.length;
    const leaves = random.chance(0.5);
    const ms = random.between(60, 250);
    const first = { ...PATIENT, waitTime: leaves ? undefined : ms, abortAfter: leaves ? ms : undefined };
    return [
      { ...PATIENT, process: busy, at, work: random.between(500, 1_500), fails: true },
      { ...first, process, at: at + 100, work: random.between(0, 50) },
      ...[120, 140].map((later) => ({ ...PATIENT, process, at: at + later, work: random.between(0, 50) })),
    ];
  });
  const of = { ...PATIENT, process: random.whole(0, processes.length - 1) };
  const abortAfter = random.between(60, 250);
  calls.push(
    { ...of, at: 3 * AGAIN, abortAfter, work: abortAfter + random.between(20, 300), fails: true },
    ...[20, 40].map((later) => ({ ...of, at: 3 * AGAIN + later, work: random.between(0, 50) })),
  );
  return { calls, forgets: [], keepFor: 400 };
}

/** The result is forgotten while a task computes it, and asked for when that has ended. */
function forgets({ processes }: Plan, random: Random): OncePlan {
  const process = (): number => random.whole(0, processes.length - 1);
  const work = random.between(500, 1_500);
  const calls = [20, 20 + work + random.between(100, 600), 20 + work + 1_000].map((at, i) => {
    return { ...PATIENT, process: process(), at, work: i === 0 ? work : random.between(0, 100) };
  });
  return { calls, forgets: [{ process: process(), at: 20 + work * random.between(0.2, 0.8) }], keepFor: 60_000 };
}

/** Connections break, or the server is a replica for a moment, just when the result is asked for. */
function onceInTrouble(plan: Plan, random: Random): Plan {
  const process = random.whole(0, plan.processes.length - 1);
  const moments = [20, AGAIN, 2 * AGAIN];
  const calls = moments.flatMap((at) =>
    [0, 0, 2].map((later) => ({
      ...PATIENT,
      process,
      at: at + later,
      waitTime: random.pick([undefined, 4_000]),
      work: random.between(0, 50),
    })),
  );
  const faults = moments.map((at): Fault => {
    const of = { at: at + random.between(-1, 3), process } as const;
    if (random.chance(0.5)) return { ...of, kind: 'cut', target: 'commands', mode: 'lost' };
    const error = "READONLY You can't write against a read only replica.";
    return { ...of, kind: 'refuse', duration: 300, command: 'EVAL', error };
  });
  return {
    ...plan,
    isCalm: false,
    messageFaults: { lost: 0, doubled: 0 },
    callers: [],
    faults,
    once: { calls, forgets: [], keepFor: 400 },
  };
}
