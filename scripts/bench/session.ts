import { candidates } from './candidates';
import type { Candidate } from './candidates/candidate';
import type { Options } from './options';
import { Performer } from './performer';
import { CandidateFault } from './processes';
import { type Round, type ScenarioResult, summarise } from './results';
import { scenarios } from './scenarios';
import type { Scenario } from './scenarios/scenario';
import type { BenchServer } from './server';

/** Told of everything while it happens. */
export interface Audience {
  /** A scenario begins a round in which all take turns so many times. */
  gathered(scenario: Scenario, round: number, turns: number): void;
  measured(scenario: Scenario, round: number, candidate: Candidate, outcome: Round): void;
  finished(result: ScenarioResult): void;
}

/** Measures what the options ask for: scenario by scenario, all candidates in turn, round after round. */
export async function hold(server: BenchServer, options: Options, audience: Audience): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const scenario of scenarios) {
    if (!isAskedFor(scenario, options)) continue;
    const cast = candidates.filter((candidate) => isIn(candidate, scenario, options));
    const rounds = new Map(cast.map((candidate): [Candidate, Round[]] => [candidate, []]));
    const { slices = 1 } = scenario.play(options.quick);
    for (let round = 0; round < options.rounds; round++) {
      const play = slices === 1 ? oneByOne : together;
      if (slices > 1) audience.gathered(scenario, round, slices);
      await play(scenario, rotated(cast, round), server, options.quick, (candidate, outcome) => {
        rounds.get(candidate)?.push(outcome);
        if (slices === 1) audience.measured(scenario, round, candidate, outcome);
      });
    }
    const result = summarise(scenario, rounds);
    audience.finished(result);
    results.push(result);
  }
  return results;
}

type Note = (candidate: Candidate, outcome: Round) => void;

/** Each has the machine for itself while it is measured. The next one starts while it warms up. */
async function oneByOne(
  scenario: Scenario,
  cast: readonly Candidate[],
  server: BenchServer,
  isQuick: boolean,
  note: Note,
): Promise<void> {
  const open = (candidate: Candidate | undefined) =>
    candidate && attempt(() => Performer.open(candidate.id, scenario.play(isQuick), server));
  let opening = open(cast[0]);
  for (const [i, candidate] of cast.entries()) {
    const opened = await opening;
    await server.clear();
    opening = open(cast[i + 1]);
    if (!(opened instanceof Performer)) {
      note(candidate, opened ?? {});
      continue;
    }
    const outcome = await attempt(async () => {
      await opened.begin();
      await opening;
      return scenario.figures(await opened.observe());
    });
    await opened.end();
    note(candidate, outcome);
  }
}

/** All are there, and take turns in short slices: whatever else the machine has to do, it disturbs all alike. */
async function together(
  scenario: Scenario,
  cast: readonly Candidate[],
  server: BenchServer,
  isQuick: boolean,
  note: Note,
): Promise<void> {
  await server.clear();
  const play = scenario.play(isQuick);
  const performers = new Map<Candidate, Performer>();
  try {
    for (const candidate of cast) {
      const outcome = await attempt(async () => {
        const performer = await Performer.open(candidate.id, play, server);
        performers.set(candidate, performer);
        await performer.begin();
        return {};
      });
      if ('fault' in outcome) note(candidate, outcome);
    }
    for (let slice = 0; slice < (play.slices ?? 1); slice++) {
      for (const [candidate, performer] of rotated([...performers], slice)) {
        note(candidate, await attempt(async () => scenario.figures(await performer.observe())));
      }
    }
  } finally {
    await Promise.all([...performers.values()].map((performer) => performer.end()));
  }
}

function isAskedFor({ number, isVariant }: Scenario, { scenarios: numbers, quick }: Options): boolean {
  return numbers.length > 0 ? numbers.includes(number) : !(quick && isVariant);
}

function isIn(candidate: Candidate, scenario: Scenario, { only, quick }: Options): boolean {
  if (!scenario.suits(candidate)) return false;
  if (only.length > 0) return only.includes(candidate.id) || candidate.id === scenario.floor;
  return !(quick && candidate.isVariant);
}

/** A candidate that cannot do it is told of, and is no reason to stop. */
async function attempt<T>(act: () => Promise<T>): Promise<T | { readonly fault: string }> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof CandidateFault) return { fault: error.message };
    throw error;
  }
}

/** So that nobody always comes first, or always after the same one. */
function rotated<T>(items: readonly T[], round: number): T[] {
  const first = Math.floor((items.length * round * 0.381966) % items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}
