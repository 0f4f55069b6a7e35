import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';

/** What one type of lock did through one kind of client on one server. */
export interface Result {
  readonly server: string;
  readonly client: string;
  readonly type: string;
  readonly passed: number;
  readonly failed: number;
  /** The day of the run: `2026-11-22`. */
  readonly date: string;
}

/** What Jest writes about a run, as far as it is read here. */
export interface JestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[] | null;
    }[];
  }[];
}

/** `A fair lock through a cluster of ioredis 5`: the title of a contract. */
const TITLE = /^A (\S+) lock through (?:an? )?(.+)$/;

/** The results of one run, for each client and type. */
export function resultsOf(report: JestReport, server: string): Result[] {
  const date = new Date().toISOString().slice(0, 10);
  const results = new Map<string, Result>();
  for (const { ancestorTitles, status } of report.testResults.flatMap((file) => file.assertionResults)) {
    const [, type, client] = TITLE.exec(ancestorTitles[0] ?? '') ?? [];
    if (type === undefined || client === undefined || status === 'pending') continue;
    const key = `${type} ${client}`;
    const { passed, failed } = results.get(key) ?? { passed: 0, failed: 0 };
    const isPassed = status === 'passed';
    results.set(key, {
      server,
      client,
      type,
      passed: passed + Number(isPassed),
      failed: failed + Number(!isPassed),
      date,
    });
  }
  return [...results.values()];
}

/** The tests that failed, and the files that could not be loaded. */
export function failuresOf(report: JestReport): string[] {
  return report.testResults.flatMap(({ name, message, assertionResults }) => {
    if (assertionResults.length === 0) return [`${name}\n${message}`];
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    return failed.map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages?.join('\n') ?? ''}`);
  });
}

/** Results of earlier runs: a run may be about one server or client only. */
const KEPT = join(__dirname, '..', '..', 'node_modules', '.cache', 'servers.json');

/** Replaces what is kept of the same server, client and type. Returns everything that is kept. */
export function keep(results: readonly Result[]): Result[] {
  const kept = new Map(readKept().map((result) => [keyOf(result), result]));
  for (const result of results) kept.set(keyOf(result), result);
  const all = [...kept.values()].sort((a, b) => compare(a, b));
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, JSON.stringify(all, undefined, 1));
  return all;
}

function readKept(): Result[] {
  try {
    return JSON.parse(readFileSync(KEPT, 'utf8')) as Result[];
  } catch {
    return [];
  }
}

function keyOf({ server, client, type }: Result): string {
  return `${server} / ${client} / ${type}`;
}

function compare(a: Result, b: Result): number {
  const order = (one: Result): number => LOCK_TYPES.indexOf(one.type as (typeof LOCK_TYPES)[number]);
  const byName = (x: string, y: string): number => x.localeCompare(y, 'en', { numeric: true });
  return byName(a.server, b.server) || byName(a.client, b.client) || order(a) - order(b);
}
