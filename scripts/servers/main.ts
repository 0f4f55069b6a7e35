/** `npm run test:servers`: exit code 0 when the contract holds on every server; 1 when not; 2 for a wrong option. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import { identifyRedis } from '../../support/redis-binary';
import { runMain } from '../../support/run-main';
import { type JestReport, keep, type Result, resultsOf, writePage } from './results';

const USAGE = `npm run test:servers -- [options]
  --server PATH   a server binary, or a folder with some; may be repeated. Default: those on the PATH
  --type TYPE     only this type of lock; may be repeated: ${LOCK_TYPES.join(', ')}
  --client NAME   only clients whose test file has this in its name (ioredis, cluster, pool); may be repeated
  --page          writes docs/redis.md, from this run and the kept results of earlier ones`;

const CONFIG = join(__dirname, '../../__tests__/servers/jest.config.ts');

/** What the library is for, as far as it tells them apart. */
const WANTED = [
  'redis-server 6.2',
  'redis-server 7.0',
  'redis-server 7.4',
  'redis-server 8',
  'valkey-server 8',
  'valkey-server 9',
];

/** `redis-server`, `valkey-server`, or with a version: `redis-8.2.3`. */
const NAME = /^(redis|valkey)-(server|\d)/;

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
function findServers(paths: readonly string[] | undefined): [server: string, binary: string][] {
  const servers = new Map<string, string>();
  for (const binary of paths?.flatMap(binariesAt) ?? binariesOnPath()) {
    const { name, version } = identifyRedis(binary);
    if (!servers.has(`${name} ${version}`)) servers.set(`${name} ${version}`, binary);
  }
  if (servers.size === 0) throw new Error(`There is no server on the PATH: name one with --server\n\n${USAGE}`);
  return [...servers].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
}

/** Runs the contract suite on one server. `files`: parts of the names of test files; none: all. */
async function runContract(binary: string, types: readonly string[], files: readonly string[]): Promise<JestReport> {
  const folder = mkdtempSync(join(tmpdir(), 'servers-'));
  try {
    const report = join(folder, 'report.json');
    const args = [require.resolve('jest/bin/jest'), '--config', CONFIG, '--json', '--outputFile', report, ...files];
    const env = { ...process.env, REDIS_URL: '', REDIS_SERVER_BIN: binary, TEST_LOCK_TYPES: types.join() };
    const jest = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    const [log] = await Promise.all([text(jest.stderr), once(jest, 'close')]);
    if (!existsSync(report)) throw new Error(`Jest wrote no report:\n${log}`);
    return JSON.parse(readFileSync(report, 'utf8')) as JestReport;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      server: { type: 'string', multiple: true },
      type: { type: 'string', multiple: true, default: [...LOCK_TYPES] },
      client: { type: 'string', multiple: true, default: [] },
      page: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const unknown = values.type.filter((type) => !LOCK_TYPES.some((one) => one === type));
  if (unknown.length > 0) throw new Error(`There is no type of lock "${unknown}"\n\n${USAGE}`);
  const servers = findServers(values.server);
  const summary: string[] = [];
  let isBroken = false;
  for (const [server, binary] of servers) {
    console.log(`${server} ...`);
    const report = await runContract(binary, values.type, values.client);
    const broken = report.testResults.filter(({ status }) => status === 'failed');
    for (const { name, message } of broken) console.log(`\nFAILED on ${server}: ${name}\n${message}`);
    isBroken ||= broken.length > 0;
    const results = resultsOf(report, server);
    if (results.length === 0) throw new Error(`Nothing was run on ${server}`);
    const all = keep(results);
    if (values.page) writePage(all);
    summary.push(`${server}: ${summaryOf(results)}`);
  }
  const missing = WANTED.filter((wanted) => !servers.some(([server]) => server.startsWith(wanted)));
  console.log(`\n${summary.join('\n')}\nnot on this machine: ${missing.join(', ') || 'none of those wanted'}`);
  return isBroken ? 1 : 0;
}

function summaryOf(results: readonly Result[]): string {
  const [clients, types] = [new Set(results.map(({ client }) => client)), new Set(results.map(({ type }) => type))];
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  return `${clients.size} clients, ${types.size} types of lock: ${passed} passed, ${failed} failed`;
}

void runMain(main);
