import { max, median, min, sum } from 'simple-statistics';
import { FaultyProxy } from '../../support/proxy';
import type { Candidate } from './candidate';
import { acquired, type Figures, figuresOf, type Metric } from './figures';
import { candidateNamed, candidates } from './libraries';
import { built } from './prepare';
import { CandidateFault, startProcess } from './processes';
import { quickly, type Scenario, type Timing } from './scenarios';
import { type BenchServer, monitored, timeOfPing } from './server';

/** ms; no lock needs a renewal while something else is measured. */
const TTL = 30_000;

/** ms of a warm-up that ends when it is enough, in which a candidate sends each of its commands at least once. */
const MONITORING = 200;

/** ms of warm-up between two looks at how often each process has acquired. */
const STEP = 1_000;

/** Starts the processes of a candidate with their loads, and warms up. */
async function start(candidate: Candidate, scenario: Scenario, timing: Timing, server: BenchServer) {
  const { warmUp, enough, settling = 0, window } = timing;
  const { delay, ttl = TTL, loads } = scenario;
  const proxy = delay === undefined ? undefined : await FaultyProxy.start(server.address);
  if (proxy !== undefined) proxy.delay = delay ?? 0;
  const { address } = proxy ?? server;
  const processes = loads.map(startProcess);
  const observe = (ms: number, isWarmUp = false) =>
    Promise.all(processes.map((process) => process.call('observe', ms, isWarmUp)));
  const end = async () => {
    proxy?.stop();
    await Promise.all(processes.map((process) => process.end()));
  };

  try {
    const ping = proxy === undefined ? Number.NaN : await timeOfPing(address);
    const { of: id, library } = candidate.earlier ?? { of: candidate.id, library: built.library };
    await Promise.all(processes.map((process) => process.call('open', id, { address, ttl, library })));
    const monitoring = enough === undefined ? warmUp : Math.min(warmUp, MONITORING);
    const requestsBetween = await monitored(server.address, async () => {
      for (const [i, process] of processes.entries()) await process.call('begin', loads[i] as (typeof loads)[number]);
      if (monitoring > 0) await observe(monitoring, true);
    });
    const counts = processes.map(() => 0);
    const isWarm = () => enough === undefined || min(counts) >= enough;
    for (let left = warmUp - monitoring; left > 0 && !isWarm(); left -= STEP)
      for (const [i, observation] of (await observe(Math.min(left, STEP), true)).entries())
        counts[i] = (counts[i] ?? 0) + acquired(observation);
    if (settling > 0) await observe(settling);

    const measure = async (): Promise<Figures> => {
      // A load without a window takes many locks, of which none can get lost.
      const contents = async () => (window > 0 ? server.contents() : new Map<string, string>());
      const contentsBefore = await contents();
      const before = await server.stats();
      const observations = await observe(window);
      const after = await server.stats();
      const contentsAfter = await contents();
      return figuresOf(loads.at(-1) as (typeof loads)[number], {
        observations,
        requests: requestsBetween(before, after),
        serverCpu: after.cpu - before.cpu,
        keysLost: [...contentsBefore].filter(([key, content]) => contentsAfter.get(key) !== content).length,
        ping,
      });
    };
    return { measure, end, isCold: !isWarm() };
  } catch (error) {
    await end();
    throw error;
  }
}

/** What a candidate did in one round, or in one window where there are several. */
export interface Outcome {
  readonly figures: Figures;
  /** Its processes acquired less often during the warm-up than is enough for V8 to compile all of their code. */
  readonly isCold?: boolean;
  /** Why there are no figures. It does not stop the run. */
  readonly fault?: string;
}

/** Measures one scenario, round by round. */
export async function measure(
  scenario: Scenario,
  participants: readonly Candidate[],
  rounds: number,
  isQuick: boolean,
  server: BenchServer,
  note: (round: number, candidate: Candidate, outcome: Outcome) => void,
): Promise<Row[]> {
  const timing = isQuick ? quickly(scenario.timing) : scenario.timing;
  const { slices = 1 } = timing;
  const outcomes = new Map(participants.map((candidate): [Candidate, Outcome[]] => [candidate, []]));
  if (scenario.hasReplica) await server.startReplica();
  for (let round = 0; round < rounds; round++) {
    const inOrder = rotated(participants, round);
    const noted = (candidate: Candidate, outcome: Outcome) => {
      outcomes.get(candidate)?.push(outcome);
      if (slices === 1) note(round, candidate, outcome);
    };
    const orFault = async (candidate: Candidate, act: () => Promise<void>) => {
      try {
        await act();
      } catch (error) {
        if (!(error instanceof CandidateFault)) throw error;
        noted(candidate, { figures: {}, fault: error.message });
      }
    };
    // Those that are measured in alternation run at the same time: other work of the machine affects all equally.
    for (const together of slices > 1 ? [inOrder] : inOrder.map((candidate) => [candidate])) {
      const running: [Candidate, Awaited<ReturnType<typeof start>>][] = [];
      await server.clear();
      try {
        for (const one of together)
          await orFault(one, async () => void running.push([one, await start(one, scenario, timing, server)]));
        for (let slice = 0; slice < slices; slice++)
          for (const [one, { measure, isCold }] of rotated(running, slice))
            await orFault(one, async () => noted(one, { figures: await measure(), isCold }));
      } finally {
        await Promise.all(running.map(([, one]) => one.end()));
      }
    }
  }
  await server.stopReplica();
  return [...outcomes].map(([candidate, ofCandidate]) => rowOf(scenario, candidate, ofCandidate, outcomes));
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

type Spreads = { readonly [Id in Metric]?: Spread };

export interface Row {
  readonly candidate: Candidate;
  readonly values: Spreads;
  /** Ratios to the floor of the same round, for metrics that have one. */
  readonly ratios: Spreads;
  readonly violations: number;
  /** In some rounds. */
  readonly isCold: boolean;
  /** Why figures are missing, or missing in some rounds. */
  readonly fault: string | undefined;
}

/** A ratio of theirs says nothing. */
const WITHOUT_RATIO: readonly Metric[] = [
  'locks lost',
  'least-served caller',
  'most-served caller',
  'least / most served',
];

function rowOf(
  { floor, metrics }: Scenario,
  candidate: Candidate,
  rounds: readonly Outcome[],
  outcomes: ReadonlyMap<Candidate, readonly Outcome[]>,
): Row {
  const floorId = candidate.floor ?? floor;
  const ofFloor = [...outcomes].find(([{ id }]) => id === floorId)?.[1] ?? [];
  const toFloor = (metric: Metric) =>
    rounds.map(({ figures }, i) => (figures[metric] ?? Number.NaN) / (ofFloor[i]?.figures[metric] ?? Number.NaN));
  return {
    candidate,
    values: spreads(metrics, (metric) => rounds.map(({ figures }) => figures[metric] ?? Number.NaN)),
    ratios: spreads(
      metrics.filter((metric) => !WITHOUT_RATIO.includes(metric)),
      toFloor,
    ),
    violations: sum(rounds.map(({ figures }) => figures.violations ?? 0)),
    isCold: rounds.some((round) => round.isCold),
    fault: rounds.find((round) => round.fault !== undefined)?.fault,
  };
}

/** Without those that have no figure in any round. */
function spreads(metrics: readonly Metric[], figuresOfMetric: (metric: Metric) => readonly number[]): Spreads {
  return Object.fromEntries(
    metrics.flatMap((metric) => {
      const all = figuresOfMetric(metric).filter(Number.isFinite);
      return all.length === 0 ? [] : [[metric, { median: median(all), least: min(all), greatest: max(all) }]];
    }),
  );
}

/** Ours alone, each beside itself in an earlier build, with which it is compared. `library`: the entry file of that build. */
export function besideEarlier(participants: readonly Candidate[], library: string): Candidate[] {
  return participants
    .filter(({ isOurs }) => isOurs)
    .flatMap((one) => {
      const id = `${one.id}-earlier`;
      return [
        { ...one, id, title: `${one.title}, earlier`, earlier: { of: one.id, library } },
        { ...one, floor: id },
      ];
    });
}

/** Of the candidates of a scenario those that the options ask for, in the order of the tables. */
export function participantsOf(scenario: Scenario, only: readonly string[], isQuick: boolean): Candidate[] {
  return candidates.filter(({ id, isVariant }) => {
    if (![scenario.floor, ...scenario.candidates].includes(id)) return false;
    if (only.length === 0) return !(isQuick && isVariant);
    const isCompared = id === scenario.floor || only.some((name) => candidateNamed(name).floor === id);
    return isCompared || only.includes(id);
  });
}
