import { TRAVELLING_TYPES } from '../../lib/api/lock-types';
import { ABORT_REASONS } from '../abort-reasons';
import { Random } from '../random';
import { type CallerPlan, isShared, type LockType, ONCE_KEY, type OnceCall, type Plan, type Round } from './plan';
import { withExtra } from './plan-extras';
import { type Fault, MOMENTS, type Moment } from './plan-faults';

/** Changes a plan, or leaves it as it is. */
type Block = (plan: Plan, random: Random) => Plan;

/**
 * What only some seeds have. Each block has a stream of its own: all other seeds, and all else of this one, stay as they
 * were.
 */
const BLOCKS: Readonly<Record<string, Block>> = {
  'abort reasons': withReasons,
  'whole minHold': withWholeMinHolds,
  closings: withClosings,
  'closed client': withReopenedClient,
  companions: withLostCompanions,
  refusals: withRefusals,
  renewals: withRenewals,
  replicas: withReplicas,
  travel: withTravel,
  once: withOnce,
  'replaced server': withReplacedServer,
  'another number': withAnotherNumber,
};

export function withBlocks(plan: Plan): Plan {
  const extra = withExtra(plan);
  if (extra !== undefined) return extra;
  const random = new Random(plan.seed, 'long waits');
  if (!plan.isCalm && random.chance(0.25)) return longWaits(plan, random);
  return Object.entries(BLOCKS).reduce((so, [name, block]) => block(so, new Random(plan.seed, name)), plan);
}

/** All callers want the same for long, and one fault comes while one of them waits or has it. All is well after that. */
function longWaits(plan: Plan, random: Random): Plan {
  const unlucky = random.pick(plan.callers);
  const { process } = unlucky;
  const duration = random.between(3_000, 6_000);
  const of = { at: 0, process, target: 'commands' } as const;
  const slow = { kind: 'slow', direction: 'down', extra: random.between(1_200, 2_500), endsWith: undefined } as const;
  const fault = random.pick<Fault>([
    { ...of, kind: 'kill', isSilent: true },
    { ...of, kind: 'hold', duration },
    { ...of, kind: 'suspend', duration },
    { ...of, ...slow, duration: random.between(20, 300) },
    { at: 0, kind: 'freeze', duration },
  ]);
  const on = ({ slow: 'unlock', suspend: 'lease' } as Record<string, Moment>)[fault.kind] ?? 'call';
  const aimed = { on, after: on === 'unlock' ? 0 : random.between(50, 400), fault };
  // It dies while it waits, and what its place does to the others takes long to see.
  const dies = fault.kind === 'kill';
  const waits = dies ? [undefined] : [undefined, 2_500, 4_000];
  const [{ keys } = unlucky] = plan.callers;
  const some = plan.callers.filter((one) => !dies || one === unlucky || one.process !== process);
  const callers = some.map(({ rounds, ...caller }) => ({
    ...caller,
    keys,
    rounds: rounds.slice(0, 3).map((round) => ({
      ...round,
      think: dies && rounds === unlucky.rounds ? 400 : round.think,
      ttl: random.pick([undefined, 30_000]),
      minHold: undefined,
      waitTime: random.pick(waits),
      permits: random.whole(1, 3),
      takes: 1,
      hold: random.between(100, 1_500),
      block: 0,
      chunk: 0,
      aimed: rounds === unlucky.rounds && round === rounds[0] ? aimed : undefined,
    })),
  }));
  // Nobody but the server knows for how long the place of a process that died counts.
  const isSetBack = dies && (isShared(plan.lockType) || random.chance(0.5));
  const faults: Fault[] = isSetBack ? [{ kind: 'server clock', at: random.between(900, 2_000), ms: 30_000 }] : [];
  return { ...plan, callers, faults };
}

/** Callers abort with errors of every kind; in some seeds, while their attempt is in flight. */
function withReasons(plan: Plan, random: Random): Plan {
  const isHasty = random.chance(0.15);
  return withRounds(plan, (round) => {
    const reason = random.pick(ABORT_REASONS);
    const isEarly = isHasty && random.chance(0.5);
    const abortAfter = isEarly ? random.between(0, random.pick([2, 10, 60])) : round.abortAfter;
    return abortAfter === undefined ? round : { ...round, abortAfter, reason };
  });
}

/** Leases that nobody else may have before they end, and that end about when they are unlocked. */
function withWholeMinHolds(plan: Plan, random: Random): Plan {
  if (!random.chance(0.15)) return plan;
  const ticks = random.chance(0.5);
  const whole = (round: Round): Round => {
    if (!random.chance(0.5)) return round;
    const ttl = random.pick([60, 300]);
    return { ...round, ttl, renew: undefined, minHold: ttl, hold: ttl - random.between(-2, 5), chunk: 0, block: 0 };
  };
  return { ...withRounds(plan, whole), ticks };
}

/** Registries are closed while an attempt is in flight. */
function withClosings(plan: Plan, random: Random): Plan {
  if (!random.chance(0.2)) return plan;
  return withRounds(plan, (round, { process }) => {
    const { least = 0, jitter = 0 } = plan.processes[process]?.client.delays ?? {};
    if (!random.chance(0.2)) return round;
    const fault = { kind: 'close', at: 0, process, timeout: random.pick([100, 1_000, 10_000]) } as const;
    return { ...round, aimed: { on: 'call', after: random.between(0, 2 * least + jitter / 4), fault } };
  });
}

/** The application closes its client, or the client gives up in an outage; then it is connected again. */
function withReopenedClient(plan: Plan, random: Random): Plan {
  if (plan.isCalm || !random.chance(0.2)) return plan;
  const process = random.whole(0, plan.processes.length - 1);
  const at = random.between(1_500, 4_000);
  const duration = random.pick([random.between(0, 50), random.between(50, 1_000), random.between(1_000, 6_000)]);
  const chosen = random.pick(['destroy', 'destroy in an outage', 'give up'] as const);
  // A pool does not give up.
  const how = plan.processes[process]?.connections === 1 ? chosen : 'destroy';
  const fault: Fault = { kind: 'reopen', at, process, duration, how };
  const [like] = plan.callers.filter((caller) => caller.process === process);
  const [other] = plan.callers.filter((caller) => caller.process !== process);
  if (like === undefined || other === undefined) return plan;
  const processes = plan.processes.map(({ options, ...one }) => ({
    ...one,
    options: { ...options, fairLockWaitTimeout: 12_000 },
  }));
  const isAimed = random.chance(0.5);
  const aim = (caller: CallerPlan): CallerPlan => {
    const rounds = caller.rounds.map((round) => {
      const closed = { ...fault, how: 'destroy', duration: random.between(0, 300) } as const;
      const aimed = { on: 'call', after: random.between(0, 4), fault: closed } as const;
      return isAimed && random.chance(0.25) ? { ...round, aimed } : round;
    });
    return caller.process === process ? { ...caller, rounds } : caller;
  };
  // Somebody waits just then, and after all has been tried again.
  const after = at + duration + 13_000;
  return {
    ...plan,
    processes,
    faults: [...plan.faults.filter((one) => !endsOneOf(one, [like])), fault].sort((one, next) => one.at - next.at),
    callers: [
      ...plan.callers.map(aim),
      ...waitingAt(at, 1_000, other, like, random),
      ...waitingAt(after, 5_000, other, like, random),
    ],
  };
}

/** The second one waits for the first at this time. */
function waitingAt(
  at: number,
  ms: number,
  holder: CallerPlan,
  waiter: CallerPlan,
  random: Random,
): [CallerPlan & { readonly rounds: readonly [Round] }, CallerPlan] {
  const round = { ...(waiter.rounds[0] as Round), ...PLAIN };
  const kind = round.kind === 'read' ? 'write' : round.kind;
  const before = random.between(400, 800);
  const keys = ['reopened'];
  return [
    { ...holder, keys, rounds: [{ ...round, kind, think: at - before, hold: before + ms }] },
    { ...waiter, keys, rounds: [{ ...round, think: at - random.between(100, 350), hold: 20 }] },
  ];
}

/** A round of which nothing is special but how long it holds, and thinks before. */
export const PLAIN = {
  method: 'lock',
  permits: 1,
  takes: 1,
  ttl: 30_000,
  renew: undefined,
  waitTime: undefined,
  minHold: undefined,
  abortAfter: undefined,
  block: 0,
  chunk: 0,
  evals: undefined,
  aimed: undefined,
} as const;

/** Keys beside that of a lock are evicted, or deleted by hand, mostly while others wait for its holder. */
function withLostCompanions(plan: Plan, random: Random): Plan {
  if (plan.isCalm || !random.chance(0.25)) return plan;
  const share = random.pick([0.1, 0.4]);
  return withRounds(plan, (round, { keys }) => {
    if (!random.chance(share)) return round;
    const fault: Fault = { kind: 'delete companion', at: 0, key: random.pick(keys), which: random.unit() };
    return { ...round, aimed: { on: random.pick(MOMENTS), after: random.between(0, 150), fault } };
  });
}

/** Answers that no attempt can mend, and such that pass. */
const REFUSALS = {
  'NOPERM this user has no permissions': 4,
  'NOAUTH Authentication required.': 1,
  'LOADING Redis is loading the dataset in memory': 1,
  "READONLY You can't write against a read only replica.": 1,
};

/** The server refuses what a process asks; often just when it acquires, or gives back. */
function withRefusals(plan: Plan, random: Random): Plan {
  if (plan.isCalm || !random.chance(0.15)) return plan;
  const refuse = (at: number, process: number, command: 'EVAL' | 'SUBSCRIBE'): Fault => {
    const duration = random.pick([random.between(100, 1_000), random.between(1_000, 6_000)]);
    return { kind: 'refuse', at, process, duration, command, error: random.weighted(REFUSALS) };
  };
  const { callers } = withRounds(plan, (round, { process }) => {
    if (!random.chance(0.15)) return round;
    return { ...round, aimed: { on: random.pick(MOMENTS), after: 0, fault: refuse(0, process, 'EVAL') } };
  });
  const faults = Array.from({ length: random.whole(1, 2) }, () =>
    refuse(random.between(20, 4_000), random.whole(0, plan.processes.length - 1), random.pick(['EVAL', 'SUBSCRIBE'])),
  );
  return { ...plan, callers, faults: [...plan.faults, ...faults].sort((one, next) => one.at - next.at) };
}

function withRenewals(plan: Plan, random: Random): Plan {
  if (!random.chance(0.15)) return plan;
  return withRounds(plan, (round) => ({ ...round, renews: random.chance(0.3) }));
}

/** A master is frozen, a replica takes its place, and it wakes up and answers for a moment. */
function withReplacedServer(plan: Plan, random: Random): Plan {
  const [holder] = plan.callers;
  const waiter = plan.callers.find(({ process }) => process !== holder?.process);
  if (plan.isCalm || plan.replicas.length > 0 || !holder || !waiter || !random.chance(0.3)) return plan;
  const early = plan.processes.map((_, i) => i).filter((i) => random.chance(i === holder.process ? 0.8 : 0.2));
  const replaced = (at: number) => {
    const duration = random.between(600, 3_000);
    return { kind: 'replace', at, duration, promotion: random.between(50, duration), early } as const;
  };
  const fault = replaced(random.between(900, 3_000));
  // One lets another one in meanwhile.
  const [first, second] = waitingAt(fault.at, random.between(20, fault.duration), holder, waiter, random);
  const [round] = first.rounds;
  // Twice, each time just when it does so; and then it wants the lock again.
  const turns = [replaced(0), replaced(0), undefined].map((one, turn) => ({
    ...round,
    think: turn === 0 ? round.think : random.between(0, 5),
    aimed: one && ({ on: 'unlock', after: 0, fault: one } as const),
  }));
  const isTwice = random.chance(0.5);
  const faults = isTwice ? plan.faults.filter((one) => !endsOneOf(one, [holder, waiter])) : [...plan.faults, fault];
  // What a client with several connections has not heard is another rule.
  const processes = plan.processes.map((one) => {
    return { ...one, connections: 1, options: { ...one.options, commandTimeout: 5_000 } };
  });
  // A wait that ends sooner leaves too little time until a grant is asked for once more.
  const { callers } = withRounds(plan, (one) => (one.waitTime ? { ...one, waitTime: 10_000 } : one));
  return {
    ...plan,
    processes,
    faults: faults.sort((one, next) => one.at - next.at),
    callers: [...callers, isTwice ? { ...first, rounds: turns } : first, second],
  };
}

function endsOneOf(fault: Fault, some: readonly { readonly process: number }[]): boolean {
  const isEnd = fault.kind === 'kill' || fault.kind === 'close';
  return isEnd && some.some(({ process }) => process === fault.process);
}

/** Grants count when replicas have them, one of which lags, or is lost, for a while. */
function withReplicas(plan: Plan, random: Random): Plan {
  if (!random.chance(0.2)) return plan;
  const replicas = Array.from({ length: random.whole(1, 2) }, () => {
    const from = plan.isCalm || random.chance(0.2) ? Number.POSITIVE_INFINITY : random.between(0, 4_000);
    const lag = random.pick([random.between(5, 60), random.between(60, 600), Number.POSITIVE_INFINITY]);
    return { from, until: from + random.between(200, 4_000), lag };
  });
  const processes = plan.processes.map((one) => {
    const minReplicas = random.whole(1, replicas.length);
    return { ...one, connections: 1, options: { ...one.options, minReplicas, replicaTimeout: random.pick([10, 100]) } };
  });
  return { ...plan, replicas, processes };
}

const TRAVELLING: readonly LockType[] = [...TRAVELLING_TYPES, 'mixed'];

/** Other processes go on with leases, or the same; now and then two want to, of which one may. */
function withTravel(plan: Plan, random: Random): Plan {
  if (!TRAVELLING.includes(plan.lockType) || !random.chance(0.25)) return plan;
  const share = random.pick([0.3, 0.8]);
  const process = (): number => random.whole(0, plan.processes.length - 1);
  return withRounds(plan, (round) => {
    if (round.method === 'run' || !random.chance(share)) return round;
    const ttl = random.pick([300, 900, 2_000]);
    const to = random.chance(0.3) ? [process(), process()] : [process()];
    const after = random.pick([random.between(0, 3), random.between(0, 0.6 * ttl)]);
    const hold = random.pick([random.between(0, 5), random.between(0, 400)]);
    const held = Math.min(round.hold, ttl / 3);
    const renew = random.chance(0.5) ? true : undefined;
    return { ...round, ttl, renew, minHold: undefined, hold: held, chunk: 0, travels: { to, after, hold } };
  });
}

/** Calls of `once` come in bursts from all processes; their lock may be lost, their result forgotten. */
function withOnce(plan: Plan, random: Random): Plan {
  if (plan.lockType === 'multi' || isShared(plan.lockType) || !random.chance(0.3)) return plan;
  const process = (): number => random.whole(0, plan.processes.length - 1);
  const burst = (at: number): OnceCall[] =>
    Array.from({ length: random.whole(2, 6) }, () => ({
      process: process(),
      at: at + random.pick([0, random.between(0, 5), random.between(0, 300)]),
      waitTime: random.chance(0.2) ? random.pick([5, 100, 700]) : undefined,
      abortAfter: random.chance(0.2) ? random.between(0, random.pick([3, 50, 1_500])) : undefined,
      work: random.pick([0, random.between(0, 30), random.between(0, 700), random.between(0, 3_000)]),
      fails: random.chance(0.1),
    }));
  const moments = Array.from({ length: random.whole(1, 4) }, () => random.between(20, 5_000));
  const forgets = Array.from({ length: random.whole(0, 2) }, () => {
    const near = random.pick(moments) + random.pick([-1, random.between(0, 5), random.between(0, 300)]);
    return { process: process(), at: Math.max(20, near) };
  });
  const lost: Fault[] =
    plan.isCalm || random.chance(0.5) ? [] : [{ kind: 'delete', at: random.between(20, 5_000), key: ONCE_KEY }];
  const faults = [...plan.faults, ...lost].sort((one, next) => one.at - next.at);
  return { ...plan, faults, once: { calls: moments.flatMap(burst), forgets, keepFor: random.pick([400, 60_000]) } };
}

/** A semaphore has another number of permits after the first calls, and callers wait for them patiently. */
function withAnotherNumber(plan: Plan, random: Random): Plan {
  if (plan.lockType !== 'semaphore' || !plan.isCalm || !random.chance(0.3)) return plan;
  const [before, after] = random.pick([
    [1, 3],
    [3, 1],
  ] as const);
  const keys = plan.callers[0]?.keys ?? [];
  const callers = plan.callers.map((caller) => ({
    ...caller,
    keys,
    rounds: caller.rounds.slice(0, 2).map((round, turn) => {
      const hold = random.between(300, 2_000);
      return { ...round, ...PLAIN, permits: turn === 0 ? before : after, hold };
    }),
  }));
  return { ...plan, callers };
}

function withRounds(plan: Plan, change: (round: Round, caller: CallerPlan) => Round): Plan {
  const callers = plan.callers.map((caller) => {
    return { ...caller, rounds: caller.rounds.map((round) => change(round, caller)) };
  });
  return { ...plan, callers };
}
