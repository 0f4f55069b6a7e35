import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { keepProcessorsAwake, killProcesses } from './child-processes';
import { languagesOf, measureAll } from './measure';
import { type Options, readOptions, UsageError, usage } from './options';
import { cache } from './prepare';
import { measureProfiles } from './profile/measure-profile';
import { buildProgram, type Language } from './programs';
import { readEnvironment } from './report/environment';
import { growthPage, pictureOf } from './report/growth-page';
import { QUICK_WARM_UP } from './report/method';
import { page } from './report/page';
import { plot } from './report/plot';
import { PROFILE_HEADING, withProfiles } from './report/profile-page';
import { sectionOf } from './report/sections';
import { Terminal } from './report/terminal';
import { type GrowthResult, growthOf, type ScenarioResult } from './results';
import { BenchServer } from './server';
import { evaluateTargets } from './targets';

const DOCS = join(__dirname, '..', '..', 'docs');
const PAGE = join(DOCS, 'benchmarks.md');

/** Exit code: 0, also when a target was missed; 1 when mutual exclusion was violated or the bench failed; 2 for a wrong option. */
export async function main(): Promise<void> {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options === undefined) console.log(usage);
    else await bench(options);
  } catch (error) {
    console.error(error instanceof UsageError ? `${error.message}\n\n${usage}` : error);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

async function bench(options: Options): Promise<void> {
  const terminal = new Terminal(options.json ? process.stderr : process.stdout, options.rounds);
  const { languages, leftOut } = buildPrograms(options);
  for (const reason of leftOut) terminal.print(`left out: ${reason}`);
  const server = await BenchServer.start();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted(server));
  try {
    const environment = readEnvironment(server.name, languages);
    terminal.print(`${environment.cpu}, ${environment.cores} cores; Node ${environment.node}, ${environment.redis}\n`);
    if (options.quick) terminal.print(`A quick run. ${QUICK_WARM_UP}\n`);
    keepProcessorsAwake();
    if (options.profile) {
      const profiles = await measureProfiles(server, options, terminal);
      if (options.page) writeFileSync(PAGE, withProfiles(readFileSync(PAGE, 'utf8'), environment, profiles));
      return;
    }
    const results = await measureAll(server, options, languages, terminal);
    const targets = results.flatMap(evaluateTargets);
    terminal.printTargets(targets);
    if (options.json) console.log(JSON.stringify({ environment, options, leftOut, results, targets }, null, 2));
    const curves = growthOf(results);
    for (const curve of curves) terminal.printGrowth(curve);
    const pictures = await draw(curves, options.page ? DOCS : cache);
    for (const file of pictures) terminal.print(`drawn: ${file}`);
    if (options.page && curves.length > 0)
      writeFileSync(join(DOCS, 'growth.md'), growthPage(environment, options, curves));
    if (options.page && results.some(({ scenario }) => scenario.point === undefined))
      writeFileSync(
        PAGE,
        page(environment, options, results, leftOut, sectionOf(readFileSync(PAGE, 'utf8'), PROFILE_HEADING)),
      );
    if (results.some(violatesExclusion)) process.exitCode = 1;
  } finally {
    killProcesses();
    await server.stop();
  }
}

/** Builds what the peers in other languages need. They are left out where that is not possible. */
function buildPrograms(options: Options): { languages: ReadonlySet<Language>; leftOut: readonly string[] } {
  const languages = new Set<Language>();
  const leftOut: string[] = [];
  for (const language of languagesOf(options)) {
    const reason = buildProgram(language);
    if (reason === undefined) languages.add(language);
    else leftOut.push(reason);
  }
  return { languages, leftOut };
}

/** Draws the curves into a folder. Returns the files. */
async function draw(curves: readonly GrowthResult[], folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const curve of curves) {
    const file = join(folder, pictureOf(curve));
    writeFileSync(file, await plot(curve));
    files.push(relative(process.cwd(), file));
  }
  return files;
}

function violatesExclusion({ rows }: ScenarioResult): boolean {
  return rows.some(({ violations }) => violations > 0);
}

function interrupted(server: BenchServer): void {
  killProcesses();
  void server.stop().finally(() => process.exit(130));
}
