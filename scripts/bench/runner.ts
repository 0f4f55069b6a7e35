import { max, median, min, sum } from 'simple-statistics';
import { FaultyProxy } from '../../support/proxy';
import type { Candidate } from './candidate';
import { acquired, type Figures, figuresOf } from './figures';
import { candidateNamed, candidates } from './libraries';
import type { Observation } from './loads';
import { built } from './prepare';
import { CandidateFault, startProcess } from './processes';
import type { Scenario, Timing } from './scenarios';
import { type BenchServer, monitored, type ServerStats, timeOfPing } from './server';

/** ms; no lock needs a renewal while something else is measured. */
const TTL = 30_000;

/** ms of warm-up in which a candidate sends each of its commands at least once. */
const MONITORING = 200;

/** ms of warm-up between two looks at how often each process has acquired. */
const STEP = 1_000;

/** Starts and connects the processes of a candidate, without a load. */
async function start(candidate: Candidate, scenario: Scenario, timing: Timing, server: BenchServer) {
  const { longest, enough, settling = 0, window } = timing;
  const { delay, ttl = TTL, loads, monitoring = Math.min(longest, MONITORING) } = scenario;
  const proxy = delay === undefined ? undefined : await FaultyProxy.start(server.address);
  if (proxy !== undefined && delay !== undefined) proxy.delay = delay;
  const { address } = proxy ?? server;
  const ping = proxy === undefined ? Number.NaN : await timeOfPing(address);
  const options = { address, ttl, library: built.library };
  const started = await Promise.allSettled(loads.map(() => startProcess(candidate, options)));
  const processes = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  /** Its processes acquired less often during the warm-up than is enough. */
  let isCold = false;
  let requestsBetween: (before: ServerStats, after: ServerStats) => number;

  const end = async () => {
    proxy?.stop();
    await Promise.all(processes.map((process) => process.end()));
  };
  for (const one of started) {
    if (one.status === 'fulfilled') continue;
    await end();
    throw one.reason;
  }
  const observe = async (ms: number, isWarmUp = false): Promise<Observation[]> => {
    const replies = await Promise.all(processes.map((one) => one.request({ observe: ms, isWarmUp })));
    return replies.map(({ observation }) => observation as Observation);
  };
  /** Starts the loads and warms up. MONITOR runs during the first part. */
  const begin = async () => {
    requestsBetween = await monitored(server.address, async () => {
      for (const [i, load] of loads.entries()) await processes[i]?.request(load);
      if (monitoring > 0) await observe(monitoring, true);
    });
    const counts = processes.map(() => 0);
    const isEnough = () => enough !== undefined && min(counts) >= enough;
    for (let left = longest - monitoring; left > 0 && !isEnough(); left -= STEP) {
      const observations = await observe(Math.min(left, STEP), true);
      for (const [i, observation] of observations.entries()) counts[i] = (counts[i] ?? 0) + acquired(observation);
    }
    isCold = enough !== undefined && !isEnough();
    if (settling > 0) await observe(settling);
  };
  const measure = async (): Promise<Figures> => {
    // A load without a window takes many locks, of which none can get lost.
    const contents = async () => (window > 0 ? server.contents() : new Map<string, string>());
    const contentsBefore = await contents();
    const before = await server.stats();
    const observations = await observe(window);
    const after = await server.stats();
    const contentsAfter = await contents();
    const figures = figuresOf(loads, {
      observations,
      seconds: max(observations.map(({ time }) => time)) / 1000,
      requests: requestsBetween(before, after),
      serverCpu: after.cpu - before.cpu,
      keysLost: [...contentsBefore].filter(([key, content]) => contentsAfter.get(key) !== content).length,
      ping,
    });
    return { ...figures, cold: Number(isCold) };
  };
  return { begin, measure, end };
}

/** A candidate that runs in its own processes. */
type Running = Awaited<ReturnType<typeof start>>;

/** One round of one candidate: its figures, or its fault. */
export type Round = Figures | { readonly fault: string };

type Note = (candidate: Candidate, outcome: Round) => void;

type Start = (candidate: Candidate) => Promise<Running>;

/** Measures one scenario, round by round. With more than one slice, a window counts as a round; it is not noted. */
export async function measure(
  scenario: Scenario,
  participants: readonly Candidate[],
  rounds: number,
  isQuick: boolean,
  server: BenchServer,
  note: (round: number, candidate: Candidate, outcome: Round) => void,
): Promise<Row[]> {
  const timing = isQuick ? scenario.quick : scenario.full;
  const { slices } = timing;
  const outcomes = new Map(participants.map((candidate): [Candidate, Round[]] => [candidate, []]));
  const open: Start = (candidate) => start(candidate, scenario, timing, server);
  if (scenario.hasReplica) await server.startReplica();
  for (let round = 0; round < rounds; round++) {
    const inOrder = rotated(participants, round);
    const noted: Note = (candidate, outcome) => {
      outcomes.get(candidate)?.push(outcome);
      if (slices === undefined) note(round, candidate, outcome);
    };
    if (slices === undefined) await measureOneByOne(inOrder, open, server, noted);
    else await measureInAlternation(inOrder, open, slices, server, noted);
  }
  await server.stopReplica();
  return [...outcomes].map(([candidate, ofCandidate]) => rowOf(scenario, candidate, ofCandidate, outcomes));
}

/** Each candidate runs alone while it is measured. The next one starts its processes during the warm-up. */
async function measureOneByOne(participants: readonly Candidate[], start: Start, server: BenchServer, note: Note) {
  const open = (candidate: Candidate | undefined) => candidate && orFault(() => start(candidate));
  let opening = open(participants[0]);
  for (const [i, candidate] of participants.entries()) {
    const opened = (await opening) ?? { fault: 'it was not started' };
    await server.clear();
    opening = open(participants[i + 1]);
    if ('fault' in opened) {
      note(candidate, opened);
      continue;
    }
    const outcome = await orFault(async () => {
      await opened.begin();
      await opening;
      return opened.measure();
    });
    await opened.end();
    note(candidate, outcome);
  }
}

/** All candidates are running and are measured in alternation, so that other work of the machine affects all equally. */
async function measureInAlternation(
  participants: readonly Candidate[],
  start: Start,
  slices: number,
  server: BenchServer,
  note: Note,
): Promise<void> {
  await server.clear();
  const running: [Candidate, Running][] = [];
  try {
    for (const candidate of participants) {
      const outcome = await orFault(async () => {
        const opened = await start(candidate);
        running.push([candidate, opened]);
        await opened.begin();
        return {};
      });
      if ('fault' in outcome) note(candidate, outcome);
    }
    for (let slice = 0; slice < slices; slice++)
      for (const [candidate, one] of rotated(running, slice)) note(candidate, await orFault(() => one.measure()));
  } finally {
    await Promise.all(running.map(([, one]) => one.end()));
  }
}

/** A fault of one candidate is recorded and does not stop the run. */
async function orFault<T>(act: () => Promise<T>): Promise<T | { readonly fault: string }> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof CandidateFault) return { fault: error.message };
    throw error;
  }
}

/** Varies the order from round to round, so that no candidate always comes first or after the same one. */
function rotated<T>(items: readonly T[], round: number): T[] {
  const first = Math.floor((items.length * round * 0.381966) % items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}

/** One figure over all rounds. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly greatest: number;
}

export interface Row {
  readonly candidate: Candidate;
  /** By metric id. */
  readonly values: Readonly<Record<string, Spread>>;
  /** Ratios to the floor of the same round, for metrics that have one. */
  readonly ratios: Readonly<Record<string, Spread>>;
  readonly violations: number;
  /** In some rounds it acquired too seldom during the warm-up for V8 to compile all of its code. */
  readonly isCold: boolean;
  /** Why figures are missing, or missing in some rounds. */
  readonly fault: string | undefined;
}

function rowOf(
  { floor, metrics }: Scenario,
  candidate: Candidate,
  rounds: readonly Round[],
  outcomes: ReadonlyMap<Candidate, readonly Round[]>,
): Row {
  const floorId = candidate.floor ?? floor;
  const ofFloor = [...outcomes].find(([{ id }]) => id === floorId)?.[1] ?? [];
  const all = (metric: string) => rounds.map((round) => figureOf(round, metric));
  const toFloor = (metric: string) => all(metric).map((value, i) => value / figureOf(ofFloor[i], metric));
  return {
    candidate,
    values: spreads(metrics.map(({ id }) => [id, all(id)])),
    ratios: spreads(metrics.filter(({ hasRatio }) => hasRatio).map(({ id }) => [id, toFloor(id)])),
    violations: sum(all('violations').map((count) => count || 0)),
    isCold: all('cold').includes(1),
    fault: rounds.flatMap((round) => ('fault' in round ? [String(round.fault)] : []))[0],
  };
}

function figureOf(round: Round | undefined, metric: string): number {
  if (round === undefined || 'fault' in round) return Number.NaN;
  return (round as Figures)[metric] ?? Number.NaN;
}

/** Without those that have no figure in any round. */
function spreads(figures: readonly (readonly [string, readonly number[]])[]): Record<string, Spread> {
  const known = figures
    .map(([id, all]) => [id, all.filter(Number.isFinite)] as const)
    .filter(([, all]) => all.length > 0);
  return Object.fromEntries(
    known.map(([id, all]) => [id, { median: median(all), least: min(all), greatest: max(all) }]),
  );
}

/** Of the candidates of a scenario those that the options ask for, in the order of the tables. */
export function participantsOf(scenario: Scenario, only: readonly string[], isQuick: boolean): Candidate[] {
  return candidates.filter(({ id, isVariant }) => {
    if (!scenario.candidates.includes(id)) return false;
    if (only.length === 0) return !(isQuick && isVariant);
    const isCompared = id === scenario.floor || only.some((name) => candidateNamed(name).floor === id);
    return isCompared || only.includes(id);
  });
}
