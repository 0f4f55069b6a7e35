import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LOCK_TYPES, type LockType } from '../../lib/kinds';

const ROOT = join(__dirname, '../..');

/** What one type of lock did through one kind of client on one server. */
export interface Result {
  readonly server: string;
  readonly client: string;
  readonly type: LockType;
  readonly passed: number;
  readonly failed: number;
  /** The day of the run: `2026-11-22`. */
  readonly date: string;
}

/** What Jest writes about a run, as far as it is read here. */
export interface JestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly ancestorTitles: readonly string[]; readonly status: string }[];
  }[];
}

/** `A fair lock through a cluster of ioredis 5`: the title of a contract. */
const TITLE = /^A (\S+) lock through (?:an? )?(.+)$/;

/** The results of one run, for each client and type. */
export function resultsOf(report: JestReport, server: string): Result[] {
  const date = new Date().toISOString().slice(0, 10);
  const results = new Map<string, Result>();
  for (const { ancestorTitles, status } of report.testResults.flatMap((file) => file.assertionResults)) {
    const [title = '', type, client] = TITLE.exec(ancestorTitles[0] ?? '') ?? [];
    if (type === undefined || client === undefined || status === 'pending') continue;
    const { passed, failed } = results.get(title) ?? { passed: 0, failed: 0 };
    const counts = status === 'passed' ? { passed: passed + 1, failed } : { passed, failed: failed + 1 };
    results.set(title, { server, client, type: type as LockType, ...counts, date });
  }
  return [...results.values()];
}

/** Results of earlier runs: a run may be about one server or client only. */
const KEPT = join(ROOT, 'node_modules/.cache/servers.json');

/** Replaces what is kept of the same server, client and type. Returns everything that is kept. */
export function keep(results: readonly Result[]): Result[] {
  const before = existsSync(KEPT) ? (JSON.parse(readFileSync(KEPT, 'utf8')) as Result[]) : [];
  const ofSame = ({ server, client, type }: Result) => `${server} / ${client} / ${LOCK_TYPES.indexOf(type)}`;
  const kept = new Map([...before, ...results].map((result) => [ofSame(result), result]));
  const all = [...kept].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })).map(([, result]) => result);
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, JSON.stringify(all, undefined, 1));
  return all;
}

const MARK = '<!-- Written by `npm run test:servers -- --page`: do not edit below. -->';

/** Writes these results to docs/redis.md: what is above the mark is written by hand. */
export function writePage(results: readonly Result[]): void {
  const path = join(ROOT, 'docs/redis.md');
  const [byHand = ''] = readFileSync(path, 'utf8').split(MARK);
  writeFileSync(path, `${[byHand.trimEnd(), MARK, ...matrix(results), versions()].join('\n\n')}\n`);
}

/** One row for the servers on which the same was run, and nothing about what was not. */
function matrix(results: readonly Result[]): string[] {
  const total = results.reduce((sum, { passed }) => sum + passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  const sizes = results.map((result) => result.passed + result.failed);
  const ofEach = between(Math.min(...sizes), Math.max(...sizes));
  const servers = [...new Set(results.map(({ server }) => server))];
  const rows = new Map<string, string[]>();
  for (const server of servers) {
    const row = rowOf(results.filter((result) => result.server === server));
    rows.set(row, [...(rows.get(row) ?? []), server]);
  }
  return [
    `${total.toLocaleString('en')} tests passed, ${failed} failed: ${ofEach} for each server, client and type of lock. What is not named was not run.`,
    [
      '| servers | run on | types of lock, through clients |',
      '| --- | --- | --- |',
      ...[...rows].map(([row, names]) => `| ${names.join(', ')} ${row}`),
    ].join('\n'),
  ];
}

/** Without the names of the servers. */
function rowOf(results: readonly Result[]): string {
  const dates = results.map(({ date }) => date).sort();
  const clients = new Map<string, string[]>();
  for (const client of new Set(results.map((result) => result.client))) {
    const types = typesOf(results.filter((result) => result.client === client));
    clients.set(types, [...(clients.get(types) ?? []), client]);
  }
  const lines = [...clients].map(([types, names]) => `${types}: ${ofOneKind(names).join('; ')}`);
  return `| ${between(dates[0], dates.at(-1))} | ${lines.join('<br>')} |`;
}

/** `client of ioredis 5` and `client of ioredis 6` are `client of ioredis 5, ioredis 6`. */
function ofOneKind(clients: readonly string[]): string[] {
  const kinds = new Map<string, string[]>();
  for (const client of clients) {
    const [, kind = '', name = client] = /^((?:sentinel )?client|cluster) of (.*)$/.exec(client) ?? [];
    kinds.set(kind, [...(kinds.get(kind) ?? []), name]);
  }
  return [...kinds].map(([kind, names]) => `${kind === '' ? '' : `${kind} of `}${names.join(', ')}`);
}

/** Of one client on one server. */
function typesOf(results: readonly Result[]): string {
  const failed = results.filter((result) => result.failed > 0);
  const passed = results.filter((result) => result.failed === 0).map(({ type }) => type);
  const good = passed.length === LOCK_TYPES.length ? 'all' : passed.join(', ');
  return [good, ...failed.map((one) => `**${one.type}: ${one.failed} failed**`)].filter(Boolean).join('; ');
}

function between<T>(first: T, last: T): string {
  return first === last ? `${first}` : `${first} to ${last}`;
}

/** Of the packages that the tests use. */
function versions(): string {
  const packages = ['redis', 'redis5', 'ioredis', 'ioredis6', 'iovalkey', '@valkey/valkey-glide'];
  const lines = packages.map((name) => {
    const file = join(ROOT, 'node_modules', name, 'package.json');
    const found = JSON.parse(readFileSync(file, 'utf8')) as { name: string; version: string };
    return `${found.name} ${found.version}`;
  });
  return `Clients: ${lines.join(', ')}; Node ${process.version}.`;
}
