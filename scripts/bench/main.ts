import { existsSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { goalLine, judged } from './goals';
import { candidates } from './libraries';
import { shownOf, writePage } from './page';
import { plot } from './plot';
import { built, cache, prepare } from './prepare';
import { keepProcessorsAwake, startProcess } from './processes';
import * as report from './report';
import { besideEarlier, measure, participantsOf } from './runner';
import { isNamed, nameOf, type Scenario, scenarios } from './scenarios';
import { type BenchServer, startServer } from './server';
import { MOST_VISITS } from './visits';

const DOCS = join(__dirname, '..', '..', 'docs');

const titles = new Map(scenarios.map(({ id, title, point }) => [id, point?.curve.title ?? title]));
const USAGE = `npm run bench -- [options]
  --quick        one round, short windows, no variants: about two minutes
  --rounds N     number of rounds (5; 1 with --quick)
  --scenario N   only this scenario (4: 4a, 4b and 4t; '9a 100': one size of 9a); may be repeated
  --only NAME    only this candidate and the floor; may be repeated
  --shown        only the candidates that the tables show
  --earlier DIR  only ours, each compared with itself as a checkout in DIR has it in dist
  --no-growth    all scenarios but 9, which takes the longest
  --profile      in place of the scenarios: how many functions of ours an uncontended call visits
  --page         writes what was measured into docs/benchmarks.json, and the tables of docs/trust.md
                 and README.md
Scenarios:
${[...titles].map(([id, title]) => `  ${id.padEnd(3)} ${title}`).join('\n')}
Candidates: ${candidates.map(({ id }) => id).join(', ')}`;

const flag = { type: 'boolean', default: false } as const;
const names = { type: 'string', multiple: true, default: [] as string[] } as const;
const OPTIONS = {
  quick: flag,
  scenario: names,
  only: names,
  shown: flag,
  'no-growth': flag,
  profile: flag,
  page: flag,
  rounds: { type: 'string' },
  earlier: { type: 'string' },
  help: { ...flag, short: 'h' },
} as const;

function readOptions() {
  const { values } = parseArgs({ options: OPTIONS });
  const { quick, only, scenario: wanted } = values;
  const earlier = values.earlier === undefined ? undefined : resolve(values.earlier, 'dist', 'index.js');
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  const unknown = [
    ...(Number.isInteger(rounds) && rounds > 0 ? [] : [`"${values.rounds}" is no number of rounds`]),
    ...wanted
      .filter((name) => !scenarios.some((one) => isNamed(one, name)))
      .map((name) => `There is no scenario "${name}"`),
    ...only
      .filter((name) => !candidates.some(({ id }) => id === name))
      .map((name) => `There is no candidate "${name}"`),
    ...(earlier === undefined || existsSync(earlier) ? [] : [`There is no "${earlier}"`]),
    ...(values.page && earlier !== undefined ? ['--page cannot be combined with --earlier'] : []),
    ...(values.page && only.length > 0 ? ['--page shows all candidates: it cannot be combined with --only'] : []),
  ];
  if (unknown.length > 0) throw new Error(unknown.join('\n'));
  const selected = scenarios.filter((one) => {
    if (wanted.length > 0) return wanted.some((name) => isNamed(one, name));
    return !(quick && one.isVariant) && !(values['no-growth'] && one.point !== undefined);
  });
  // Goals are about floors and other libraries.
  const compared = selected.map((one): Scenario => ({ ...one, floor: 'the earlier build', goals: [] }));
  return { ...values, rounds, earlier, selected: earlier === undefined ? selected : compared };
}

type Options = ReturnType<typeof readOptions>;

async function bench(options: Options): Promise<void> {
  prepare();
  const server = await startServer();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void server.stop().finally(() => process.exit(130)));
  try {
    const measured = `${report.environment(server.name)}; rounds: ${options.rounds}${options.quick ? ', quick' : ''}`;
    console.log(`Measured ${measured}.`);
    if (options.quick)
      console.log('A quick run: V8 has not compiled all code, so CPU and rates are not those of a service.');
    await keepProcessorsAwake();
    if (options.profile) return await printVisits(server);
    const results = await measureAll(options, server);
    const goals = results.flatMap(({ scenario, rows }) => judged(scenario, report.measuresOf(rows)));
    for (const goal of goals) console.log(goalLine(goal));
    await write(options, results, measured);
    if (results.some(({ rows }) => rows.some(({ violations }) => violations > 0))) process.exitCode = 1;
  } finally {
    await server.stop();
  }
}

async function printVisits({ address }: BenchServer): Promise<void> {
  const rows: string[][] = [];
  for (const id of ['spin', 'pub-sub', 'fair']) {
    const one = startProcess();
    await one.call('open', id, { address, ttl: 30_000, library: built.library });
    const { lock, unlock } = await one.call('countVisits', built.library);
    await one.end();
    rows.push([id, String(lock), String(unlock)]);
  }
  const { lock, unlock } = MOST_VISITS;
  console.log(`\nFunctions of the library that an uncontended call visits (goals: ${lock} and ${unlock})`);
  console.log(report.terminalTable(['', 'lock()', 'unlock()'], rows));
}

async function measureAll({ selected, only, shown, quick, rounds, earlier }: Options, server: BenchServer) {
  const results: report.ScenarioResult[] = [];
  for (const scenario of selected) {
    const selection = participantsOf(scenario, shown ? shownOf(scenario) : only, quick);
    const participants = earlier === undefined ? selection : besideEarlier(selection, earlier);
    if (participants.length === 0) continue;
    const name = nameOf(scenario);
    const rows = await measure(scenario, participants, rounds, quick, server, (round, { title }, outcome) =>
      console.log(`${name.padEnd(8)} ${round + 1}/${rounds}  ${title.padEnd(42)} ${report.lineOf(scenario, outcome)}`),
    );
    results.push({ scenario, rows });
    console.log(`${report.scenarioTable({ scenario, rows })}\n`);
  }
  return results;
}

/** Pictures of curves, and with --page the page and the figures behind it. */
async function write({ page }: Options, results: readonly report.ScenarioResult[], measured: string): Promise<void> {
  for (const [curve, points] of report.curvesOf(results)) {
    const picture = join(page ? DOCS : cache, report.pictureOf(curve));
    writeFileSync(picture, await plot(curve, points));
    console.log(`drawn: ${relative(process.cwd(), picture)}`);
  }
  if (page) writePage(results, measured);
}

/** Exit code: 0, also when a goal was missed; 1 when mutual exclusion was violated or the bench failed; 2 for a wrong option. */
async function main(): Promise<void> {
  let options: Options;
  try {
    options = readOptions();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  if (options.help) console.log(USAGE);
  else await bench(options);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
