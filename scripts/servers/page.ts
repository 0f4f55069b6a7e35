import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import type { Result } from './results';

const MARK = '<!-- Written by `npm run test:servers -- --page`: do not edit below. -->';

/** The page docs/compatibility.md with these results: what is above the mark is written by hand. */
export function page(before: string, results: readonly Result[]): string {
  const [byHand] = before.split(MARK);
  return [byHand?.trimEnd(), MARK, ...matrix(results), versions()].join('\n\n').concat('\n');
}

/** One row for each server, and nothing about what was not run there. */
function matrix(results: readonly Result[]): string[] {
  const servers = [...new Set(results.map(({ server }) => server))];
  const total = results.reduce((sum, { passed }) => sum + passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  const sizes = results.map((result) => result.passed + result.failed);
  const ofEach = between(Math.min(...sizes), Math.max(...sizes));
  return [
    `${total.toLocaleString('en')} tests passed, ${failed} failed: ${ofEach} for each server, client and type of lock. What is not named was not run.`,
    table(
      ['server', 'run on', 'types of lock, through clients'],
      servers.map((server) =>
        rowOf(
          server,
          results.filter((result) => result.server === server),
        ),
      ),
    ),
  ];
}

function rowOf(server: string, results: readonly Result[]): string[] {
  const dates = results.map(({ date }) => date).sort();
  const clients = new Map<string, string[]>();
  for (const client of new Set(results.map((result) => result.client))) {
    const types = typesOf(results.filter((result) => result.client === client));
    clients.set(types, [...(clients.get(types) ?? []), client]);
  }
  const lines = [...clients].map(([types, names]) => `${types}: ${names.join(', ')}`);
  return [server, between(dates[0], dates.at(-1)), lines.join('<br>')];
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
    const file = join(__dirname, '..', '..', 'node_modules', name, 'package.json');
    const found = JSON.parse(readFileSync(file, 'utf8')) as { name: string; version: string };
    return `${found.name} ${found.version}`;
  });
  return `Clients: ${lines.join(', ')}; Node ${process.version}.`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
