import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Options, readOptions, UsageError, usage } from './options';
import { endProcesses, keepProcessorsAwake } from './processes';
import { circumstances } from './report/machine';
import { page } from './report/page';
import { Terminal } from './report/terminal';
import type { ScenarioResult } from './results';
import { BenchServer } from './server';
import { hold } from './session';
import { judge } from './targets';

const PAGE = join(__dirname, '..', '..', 'docs', 'benchmarks.md');

/** Exit code: 0; 1 when a lock did not exclude, or the bench itself failed; 2 for a wrong option. A missed target is no failure. */
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
  const terminal = new Terminal(options.json ? process.stderr : process.stdout, options.rounds, judge);
  const server = await BenchServer.start();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted(server));
  try {
    const about = circumstances(server.name);
    terminal.say(`${about.cpu}, ${about.cores} cores; Node ${about.node}, ${about.redis}\n`);
    keepProcessorsAwake();
    const results = await hold(server, options, terminal);
    const verdicts = results.flatMap(judge);
    terminal.say('Targets');
    terminal.verdicts(verdicts);
    if (options.json) console.log(JSON.stringify({ about, options, results, verdicts }, null, 2));
    if (options.page) {
      mkdirSync(dirname(PAGE), { recursive: true });
      writeFileSync(PAGE, page(about, options, results, verdicts));
    }
    if (results.some(letsIntrudersIn)) process.exitCode = 1;
  } finally {
    endProcesses();
    await server.stop();
  }
}

function letsIntrudersIn({ rows }: ScenarioResult): boolean {
  return rows.some(({ violations }) => violations > 0);
}

function interrupted(server: BenchServer): void {
  endProcesses();
  void server.stop().finally(() => process.exit(130));
}
