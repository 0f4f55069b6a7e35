/** `npm run test:servers`: the contract suite on every server of this machine. See `usage`. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Options, readOptions, UsageError, usage } from './options';
import { page } from './page';
import { failuresOf, keep, type Result, resultsOf } from './results';
import { runContract } from './run';
import { findServers, label, type Server, WANTED } from './servers';

const PAGE = join(__dirname, '..', '..', 'docs', 'compatibility.md');

/** Returns whether everything passed. */
async function runOn(server: Server, options: Options): Promise<Result[]> {
  const name = label(server);
  console.log(`${name} ...`);
  const report = await runContract(server, options);
  const results = resultsOf(report, name);
  const broken = failuresOf(report);
  for (const failure of broken) console.log(`\nFAILED on ${name}: ${failure}`);
  if (results.length === 0) throw new Error(`Nothing was run on ${name}`);
  if (broken.length > 0) process.exitCode = 1;
  return results;
}

function summary(servers: readonly Server[], results: readonly Result[]): string[] {
  const lines = servers.map((server) => {
    const here = results.filter((result) => result.server === label(server));
    const count = (of: (result: Result) => number) => here.reduce((sum, result) => sum + of(result), 0);
    const clients = new Set(here.map(({ client }) => client)).size;
    const types = new Set(here.map(({ type }) => type)).size;
    const counts = `${count(({ passed }) => passed)} passed, ${count(({ failed }) => failed)} failed`;
    return `${label(server)}: ${clients} clients, ${types} types of lock: ${counts}`;
  });
  const missing = Object.keys(WANTED).filter((name) => !servers.some((server) => WANTED[name]?.(server)));
  return [...lines, `not on this machine: ${missing.length === 0 ? 'none of those wanted' : missing.join(', ')}`];
}

async function main(options: Options): Promise<void> {
  const servers = findServers(options.servers);
  if (servers.length === 0) throw new UsageError('There is no server on the PATH: name one with --server');
  const results: Result[] = [];
  let kept: Result[] = [];
  for (const server of servers) {
    const ofServer = await runOn(server, options);
    results.push(...ofServer);
    kept = keep(ofServer);
  }
  if (options.page) writeFileSync(PAGE, page(readFileSync(PAGE, 'utf8'), kept));
  console.log(`\n${summary(servers, results).join('\n')}`);
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) console.log(usage);
  else {
    void main(options).catch((error: Error) => {
      console.error(error instanceof UsageError ? `${error.message}\n\n${usage}` : error);
      process.exitCode = 1;
    });
  }
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`);
  process.exitCode = 2;
}
