import { setTimeout as sleep } from 'node:timers/promises';
import type { Violation } from '../judge/violations';
import type { Random } from '../random';
import { type AwakeClock, holdsWithin, sharedNow } from './awake-clock';
import type { FaultLanes } from './faults/fault-lanes';
import type { Leftover, Leftovers } from './leftovers';
import { type AdminClient, countScripts } from './redis-content';
import { CALM_KEY, GRACES, HEALTHY, KEYS, type SoakExtra } from './settings';
import type { WorkerSlot } from './worker-slot';

/** ms in calm after which everything that nobody holds must be gone from Redis. */
const CLEANING = 10_000;
/** ms in calm within which each worker must get each lock. */
const PROGRESS = 10_000;

/**
 * ms in which the commands of workers are counted that nobody calls, and how many each of them may send when the graces of
 * the calls are over that have left in them: until then they remind those from which they have taken a lock.
 */
const IDLE = 1_000;
const MOST_COMMANDS = 15;
/** ms for which all want one lock, and in which each of them has a turn. */
const BUSY = 8_000;
const TURN_WITHIN = 5_000;
/** MB that a worker may have resident; it begins with some 80. */
const MOST_MEMORY = 300;

export interface RoundServices {
  readonly admin: AdminClient;
  readonly slots: readonly WorkerSlot[];
  readonly lanes: FaultLanes;
  readonly leftovers: Leftovers;
  readonly clock: AwakeClock;
  readonly random: Random;
  readonly extras: readonly SoakExtra[];
  /** Whether positions of dead waiters block a lock until they time out, as in Redisson's format. */
  readonly deadPositionsBlock: boolean;
}

export interface RoundResult {
  readonly violations: readonly Violation[];
  readonly inCalm: number;
}

/** Work under faults for a time; then calm, in which nothing may be left in Redis and every worker must get every lock. */
export async function runRound(services: RoundServices, ms: number): Promise<RoundResult> {
  const { slots, lanes, leftovers, clock, admin } = services;
  await Promise.all(slots.map(({ process }) => process.ask({ do: 'resume' })));
  await lanes.inflict(sharedNow() + ms);
  for (const { proxy } of slots) proxy.delay = HEALTHY;
  const paused = await Promise.all(
    slots.map(async ({ name, process }) => ({ name, ...(await process.ask({ do: 'pause' })) })),
  );
  const before = [
    ...paused.flatMap(({ name, memory }) => tooMuchMemory(name, memory)),
    ...(await tooManyCommands(admin, slots.length)),
    ...(await leftoversAfter(leftovers, clock)),
    ...(await starved(services)),
  ];
  const { violations, inCalm } = await progress(services);
  const after = await leftoversAfter(leftovers, clock);
  return { violations: [...before, ...violations, ...after], inCalm };
}

/** Two workers want one lock, and one of them may get no messages, or none that are counted: the other one is alone then. */
async function starved({ slots, random, extras }: RoundServices): Promise<Violation[]> {
  const isHalfOpen = extras.includes('half open');
  if (!isHalfOpen && !extras.includes('listens at a replica')) return [];
  // The first one listens at a replica.
  const [one, other] = [slots[0], random.pick(slots.slice(1))] as [WorkerSlot, WorkerSlot];
  const pair = [one, other];
  const waits = pair.map(({ process }) => process.ask({ do: 'busy', key: CALM_KEY, ms: BUSY }));
  const { proxy } = one;
  await sleep(500);
  if (isHalfOpen) proxy.deafen(random.chance(0.5));
  const longest = (await Promise.all(waits)).map((one) => Math.round(one.longest));
  if (isHalfOpen) proxy.resetSubscribed();
  proxy.isDeaf = false;
  return pair.flatMap(({ name }, i) => {
    const ms = longest[i] as number;
    return ms <= TURN_WITHIN
      ? []
      : [{ kind: 'starved', text: `${name} has had no turn for ${ms} ms`, at: sharedNow() }];
  });
}

function tooMuchMemory(name: string, memory: number): Violation[] {
  const mb = Math.round(memory / 2 ** 20);
  if (mb <= MOST_MEMORY) return [];
  return [{ kind: 'too much memory', text: `${name} has ${mb} MB resident`, at: sharedNow() }];
}

/** What is sent for acquisitions that are over is bounded. */
async function tooManyCommands(admin: AdminClient, workers: number): Promise<Violation[]> {
  const until = sharedNow() + GRACES.long + IDLE;
  let count: number;
  do {
    const before = await countScripts(admin);
    await sleep(IDLE);
    count = (await countScripts(admin)) - before;
    if (count <= MOST_COMMANDS * workers) return [];
  } while (sharedNow() < until);
  const text = `${workers} workers that nobody calls have sent ${count} scripts within ${IDLE} ms`;
  return [{ kind: 'too many commands', text, at: sharedNow() }];
}

export async function leftoversAfter(leftovers: Leftovers, clock: AwakeClock): Promise<Violation[]> {
  let found: Leftover[] = [];
  const isClean = async () => {
    found = await leftovers.find();
    return found.length === 0;
  };
  if (await holdsWithin(clock, CLEANING, isClean)) return [];
  return found.map(({ text, key, since }) => {
    const at = since ?? sharedNow();
    return { kind: 'left in Redis', text, at, ...(key === undefined ? {} : { key }) };
  });
}

async function progress({ slots, leftovers, deadPositionsBlock }: RoundServices): Promise<RoundResult> {
  const blocked = await leftovers.blocked(KEYS, deadPositionsBlock);
  const keys = [CALM_KEY, ...KEYS.filter((key) => !blocked.includes(key))];
  const violations = await Promise.all(
    slots.map(async ({ name, process }) => {
      const { failures } = await process.ask({ do: 'progress', keys, within: PROGRESS });
      return failures.map((text): Violation => ({ kind: 'no progress', text: `${name}: ${text}`, at: sharedNow() }));
    }),
  );
  return { violations: violations.flat(), inCalm: keys.length * slots.length - violations.flat().length };
}
