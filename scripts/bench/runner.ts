import { max, median, min, sum } from 'simple-statistics';
import { FaultyProxy } from '../../support/proxy';
import type { Candidate } from './candidate';
import { acquired, type Figures, figuresOf } from './figures';
import { candidateNamed, candidates } from './libraries';
import type { Observation } from './loads';
import { built } from './prepare';
import { BenchProcess, CandidateFault } from './processes';
import type { Scenario, Timing } from './scenarios';
import { type BenchServer, monitored, type ServerStats, timeOfPing } from './server';

/** ms; no lock needs a renewal while something else is measured. */
const TTL = 30_000;

/** ms of warm-up in which a candidate sends each of its commands at least once. */
const MONITORING = 200;

/** ms of warm-up between two looks at how often each process has acquired. */
const STEP = 1_000;

/** A candidate that runs in its own processes. */
class RunningCandidate {
  readonly #scenario: Scenario;
  readonly #timing: Timing;
  readonly #server: BenchServer;
  readonly #processes: BenchProcess[] = [];
  #proxy: FaultyProxy | undefined;
  #ping = Number.NaN;
  /** Its processes acquired less often during the warm-up than is enough. */
  #isCold = false;
  #requests!: (before: ServerStats, after: ServerStats) => number;

  constructor(scenario: Scenario, timing: Timing, server: BenchServer) {
    this.#scenario = scenario;
    this.#timing = timing;
    this.#server = server;
  }

  /** Starts and connects its processes, without a load. */
  async open(candidate: Candidate): Promise<this> {
    try {
      const { delay, ttl = TTL, loads } = this.#scenario;
      let { address } = this.#server;
      if (delay !== undefined) {
        this.#proxy = await FaultyProxy.start(address);
        this.#proxy.delay = delay;
        address = this.#proxy.address;
        this.#ping = await timeOfPing(address);
      }
      const options = { address, ttl, library: built.library };
      const starting = loads.map(async () => this.#processes.push(await BenchProcess.start(candidate, options)));
      for (const one of await Promise.allSettled(starting)) if (one.status === 'rejected') throw one.reason;
      return this;
    } catch (error) {
      await this.end();
      throw error;
    }
  }

  /** Starts the loads and warms up. MONITOR runs during the first part. */
  async begin(): Promise<void> {
    const { loads, monitoring = Math.min(this.#timing.longest, MONITORING) } = this.#scenario;
    const { longest, enough, settling = 0 } = this.#timing;
    this.#requests = await monitored(this.#server.address, async () => {
      for (const [i, load] of loads.entries()) await this.#processes[i]?.request(load);
      if (monitoring > 0) await this.#observe(monitoring, true);
    });
    const counts = this.#processes.map(() => 0);
    const isEnough = () => enough !== undefined && min(counts) >= enough;
    for (let left = longest - monitoring; left > 0 && !isEnough(); left -= STEP) {
      const observations = await this.#observe(Math.min(left, STEP), true);
      for (const [i, observation] of observations.entries()) counts[i] = (counts[i] ?? 0) + acquired(observation);
    }
    this.#isCold = enough !== undefined && !isEnough();
    if (settling > 0) await this.#observe(settling);
  }

  async measure(): Promise<Figures> {
    const { window } = this.#timing;
    // A load without a window takes many locks, of which none can get lost.
    const contents = async () => (window > 0 ? this.#server.contents() : new Map<string, string>());
    const contentsBefore = await contents();
    const before = await this.#server.stats();
    const observations = await this.#observe(window);
    const after = await this.#server.stats();
    const contentsAfter = await contents();
    const figures = figuresOf(this.#scenario.loads, {
      observations,
      seconds: max(observations.map(({ time }) => time)) / 1000,
      requests: this.#requests(before, after),
      serverCpu: after.cpu - before.cpu,
      keysLost: [...contentsBefore].filter(([key, content]) => contentsAfter.get(key) !== content).length,
      ping: this.#ping,
    });
    return { ...figures, cold: Number(this.#isCold) };
  }

  async end(): Promise<void> {
    this.#proxy?.stop();
    await Promise.all(this.#processes.map((process) => process.end()));
  }

  async #observe(ms: number, isWarmUp = false): Promise<Observation[]> {
    const replies = await Promise.all(this.#processes.map((one) => one.request({ observe: ms, isWarmUp })));
    return replies.map(({ observation }) => observation as Observation);
  }
}

/** One round of one candidate: its figures, or its fault. */
export type Round = Figures | { readonly fault: string };

type Note = (candidate: Candidate, outcome: Round) => void;

/** A candidate that is about to run. */
type Start = (candidate: Candidate) => Promise<RunningCandidate>;

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
  const start: Start = (candidate) => new RunningCandidate(scenario, timing, server).open(candidate);
  if (scenario.hasReplica) await server.startReplica();
  for (let round = 0; round < rounds; round++) {
    const inOrder = rotated(participants, round);
    const noted: Note = (candidate, outcome) => {
      outcomes.get(candidate)?.push(outcome);
      if (slices === undefined) note(round, candidate, outcome);
    };
    if (slices === undefined) await measureOneByOne(inOrder, start, server, noted);
    else await measureInAlternation(inOrder, start, slices, server, noted);
  }
  await server.stopReplica();
  return [...outcomes].map(([candidate, ofCandidate]) => rowOf(scenario, candidate, ofCandidate, outcomes));
}

/** Each candidate runs alone while it is measured. The next one starts its processes during the warm-up. */
async function measureOneByOne(participants: readonly Candidate[], start: Start, server: BenchServer, note: Note) {
  const open = (candidate: Candidate | undefined) => candidate && orFault(() => start(candidate));
  let opening = open(participants[0]);
  for (const [i, candidate] of participants.entries()) {
    const opened = await opening;
    await server.clear();
    opening = open(participants[i + 1]);
    if (!(opened instanceof RunningCandidate)) {
      note(candidate, opened ?? {});
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
  const running: [Candidate, RunningCandidate][] = [];
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
