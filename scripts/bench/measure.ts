import { candidates } from './candidates';
import type { Candidate } from './candidates/candidate';
import { CandidateFault } from './child-processes';
import type { Options } from './options';
import { FOREIGN_LOADS, type Language } from './programs';
import { type Round, type ScenarioResult, summarise } from './results';
import { type Measurement, RunningCandidate } from './running-candidate';
import { scenarios } from './scenarios';
import { type Figures, isNamed, type Scenario } from './scenarios/scenario';
import type { BenchServer } from './server';

/** Notified of the progress of a run. */
export interface ProgressListener {
  /** A round begins in which all candidates are measured in alternation, each in `slices` windows. */
  alternatingRoundStarted(scenario: Scenario, round: number, slices: number): void;
  measured(scenario: Scenario, round: number, candidate: Candidate, outcome: Round): void;
  finished(result: ScenarioResult): void;
}

type RecordOutcome = (candidate: Candidate, outcome: Round) => void;

/** The languages of all peers that the options ask for. */
export function languagesOf(options: Options): ReadonlySet<Language> {
  const participants = scenarios
    .filter((scenario) => isSelected(scenario, options))
    .flatMap((scenario) => participantsOf(scenario, options));
  return new Set(participants.flatMap(({ language }) => language ?? []));
}

/** Measures the selected scenarios: in each of them, round by round, all candidates; of other languages only these. */
export async function measureAll(
  server: BenchServer,
  options: Options,
  languages: ReadonlySet<Language>,
  progress: ProgressListener,
): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const scenario of scenarios.filter((one) => isSelected(one, options))) {
    const participants = participantsOf(scenario, options).filter(
      ({ language }) => language === undefined || languages.has(language),
    );
    const rounds = new Map(participants.map((candidate): [Candidate, Round[]] => [candidate, []]));
    const { slices = 1, hasReplica = false } = scenario.plan(options.quick);
    if (hasReplica) await server.startReplica();
    const measureRound = slices === 1 ? measureOneByOne : measureInAlternation;
    for (let round = 0; round < options.rounds; round++) {
      if (slices > 1) progress.alternatingRoundStarted(scenario, round, slices);
      await measureRound(scenario, rotated(participants, round), server, options.quick, (candidate, outcome) => {
        rounds.get(candidate)?.push(outcome);
        if (slices === 1) progress.measured(scenario, round, candidate, outcome);
      });
    }
    await server.stopReplica();
    const result = summarise(scenario, rounds);
    progress.finished(result);
    results.push(result);
  }
  return results;
}

/** Each candidate runs alone while it is measured. The next one starts its processes during the warm-up. */
async function measureOneByOne(
  scenario: Scenario,
  participants: readonly Candidate[],
  server: BenchServer,
  isQuick: boolean,
  record: RecordOutcome,
): Promise<void> {
  const open = (candidate: Candidate | undefined) =>
    candidate && orFault(() => RunningCandidate.open(candidate, scenario.plan(isQuick), server));
  let opening = open(participants[0]);
  for (const [i, candidate] of participants.entries()) {
    const opened = await opening;
    await server.clear();
    opening = open(participants[i + 1]);
    if (!(opened instanceof RunningCandidate)) {
      record(candidate, opened ?? {});
      continue;
    }
    const outcome = await orFault(async () => {
      await opened.begin();
      await opening;
      return figuresOf(scenario, await opened.measure());
    });
    await opened.end();
    record(candidate, outcome);
  }
}

/** All candidates are running and are measured in alternation, so that other work of the machine affects all equally. */
async function measureInAlternation(
  scenario: Scenario,
  participants: readonly Candidate[],
  server: BenchServer,
  isQuick: boolean,
  record: RecordOutcome,
): Promise<void> {
  await server.clear();
  const plan = scenario.plan(isQuick);
  const running = new Map<Candidate, RunningCandidate>();
  try {
    for (const candidate of participants) {
      const outcome = await orFault(async () => {
        const opened = await RunningCandidate.open(candidate, plan, server);
        running.set(candidate, opened);
        await opened.begin();
        return {};
      });
      if ('fault' in outcome) record(candidate, outcome);
    }
    for (let slice = 0; slice < (plan.slices ?? 1); slice++) {
      for (const [candidate, one] of rotated([...running], slice)) {
        record(candidate, await orFault(async () => figuresOf(scenario, await one.measure())));
      }
    }
  } finally {
    await Promise.all([...running.values()].map((one) => one.end()));
  }
}

function figuresOf(scenario: Scenario, measurement: Measurement): Figures {
  return { ...scenario.figures(measurement), cold: Number(measurement.isCold) };
}

function isSelected(scenario: Scenario, { scenarios: names, quick }: Options): boolean {
  return names.length > 0 ? names.some((name) => isNamed(scenario, name)) : !(quick && scenario.isVariant);
}

function participantsOf(scenario: Scenario, { only, quick, peers, scenarios: names }: Options): Candidate[] {
  const asksFor = new Set<Language>(peers);
  if (!quick || names.length > 0) for (const language of scenario.languages ?? []) asksFor.add(language);
  const knowsLoads = scenario.plan(quick).loads.every(({ load }) => FOREIGN_LOADS.includes(load));
  return candidates.filter((candidate) => {
    const { id, language, isVariant } = candidate;
    if (!scenario.suits(candidate) || (language !== undefined && !knowsLoads)) return false;
    if (only.length > 0) return only.includes(id) || id === scenario.floor;
    return language === undefined ? !(quick && isVariant) : asksFor.has(language);
  });
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
