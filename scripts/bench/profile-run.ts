import { sum } from 'simple-statistics';
import type { Shares } from '../../support/cpu-shares';
import type { Figures } from './figures';
import { candidateNamed } from './libraries';
import { built } from './prepare';
import { BenchProcess } from './processes';
import { figure, terminalTable } from './report';
import { RunningCandidate } from './runner';
import { isNamed, scenarios } from './scenarios';
import type { BenchServer } from './server';

const OURS = ['spin', 'pub-sub', 'fair'];

/** Functions of ours that an uncontended call may visit. */
const GOALS = { lock: 60, unlock: 30 };

/**
 * Scenarios whose cost is taken apart, ours beside the floors. Only those in which a process works all the time: V8 counts
 * most of what a lone caller does as idle time, so that a minute of it has a few dozen samples.
 */
const SUBJECTS = ['2', '3'];

/** Samples of CPU time of each candidate: the share of a part of 1 % is then good to a quarter of it. */
const SAMPLES = 2_000;
const QUICK_SAMPLES = 500;

/** ms of one window, and the most windows. */
const WINDOW = 1_500;
const MOST_WINDOWS = 20;

/** Functions that are named. */
const HOTTEST = 10;

interface Options {
  readonly quick: boolean;
  readonly scenario: readonly string[];
}

/** In place of the scenarios: what a call costs. */
export async function profile(
  { quick, scenario: names }: Options,
  server: BenchServer,
  print: (text: string) => void,
): Promise<void> {
  const counts: string[][] = [];
  for (const id of OURS) {
    const one = await BenchProcess.start(candidateNamed(id), {
      address: server.address,
      ttl: 30_000,
      library: built.library,
    });
    const { lock = Number.NaN, unlock = Number.NaN } = (await one.request({ count: true })).counts ?? {};
    await one.end();
    counts.push([id, String(lock), String(unlock)]);
  }
  print(`\nFunctions of the library that an uncontended call visits (goals: ${GOALS.lock} and ${GOALS.unlock})`);
  print(terminalTable(['', 'lock()', 'unlock()'], counts));
  for (const scenario of scenarios.filter(({ id }) => SUBJECTS.includes(id))) {
    if (names.length > 0 && !names.some((name) => isNamed(scenario, name))) continue;
    const timing = { ...(quick ? scenario.quick : scenario.full), window: WINDOW };
    const costs: Cost[] = [];
    for (const id of scenario.candidates.filter((name) => name.startsWith('floor') || OURS.includes(name))) {
      const candidate = candidateNamed(id);
      print(`${scenario.id.padEnd(3)} ${candidate.title}`);
      await server.clear();
      const running = await RunningCandidate.open(candidate, scenario, timing, server);
      try {
        await running.begin();
        const figures = await running.measure();
        const shares: Shares[] = [];
        const wanted = quick ? QUICK_SAMPLES : SAMPLES;
        for (let i = 0; i < MOST_WINDOWS && samplesOf(shares) < wanted; i++)
          shares.push(...(await running.profile(WINDOW)));
        costs.push({ title: candidate.title, figures, shares });
      } finally {
        await running.end();
      }
    }
    print(`\nScenario ${scenario.id}: ${scenario.title}\n${costTable(costs)}`);
    for (const cost of costs) print(`${cost.title}: ${hottest(cost)}`);
  }
}

interface Cost {
  readonly title: string;
  /** Measured without the profiler. */
  readonly figures: Figures;
  readonly shares: readonly Shares[];
}

const total = (parts: readonly Readonly<Record<string, number>>[], name: string): number =>
  sum(parts.map((part) => part[name] ?? 0));

const samplesOf = (shares: readonly Shares[]): number =>
  sum(shares.flatMap(({ byOwner }) => Object.values(byOwner)).concat(0));

/** µs of client CPU of each acquisition, by whose code it is, in proportion to the samples. */
function costTable(costs: readonly Cost[]): string {
  const names = [
    ...new Set(costs.flatMap(({ shares }) => shares.flatMap(({ byOwner }) => Object.keys(byOwner)))),
  ].sort();
  const partOf = ({ figures, shares }: Cost, owner: string) =>
    ((figures.client ?? Number.NaN) *
      total(
        shares.map(({ byOwner }) => byOwner),
        owner,
      )) /
    samplesOf(shares);
  return terminalTable(
    [
      'µs of client CPU for each',
      ...costs.map(({ title }) => title.replaceAll(/[:,] /g, (text) => `${text.trim()}\n`)),
    ],
    [
      ...names.map((name) => [name, ...costs.map((cost) => figure(partOf(cost, name)))]),
      ['all', ...costs.map(({ figures }) => figure(figures.client ?? Number.NaN))],
      ['samples', ...costs.map(({ shares }) => figure(samplesOf(shares)))],
      ['server CPU', ...costs.map(({ figures }) => figure(figures.server ?? Number.NaN))],
      ['requests', ...costs.map(({ figures }) => figure(figures.requests ?? Number.NaN))],
    ],
  );
}

/** The functions that took most of the library's own part, or the floor's. */
function hottest({ shares }: Cost): string {
  const parts = shares.map(({ byFunction }) => byFunction);
  const names = [...new Set(parts.flatMap((part) => Object.keys(part)))].filter((name) =>
    /^(lib|scripts\/bench\/floors)/.test(name),
  );
  return names
    .map((name) => ({ name, share: total(parts, name) / samplesOf(shares) }))
    .sort((a, b) => b.share - a.share)
    .slice(0, HOTTEST)
    .map(({ name, share }) => `${figure(100 * share)} % ${name}`)
    .join(', ');
}
