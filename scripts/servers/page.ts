import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Result } from './results';

const MARK = '<!-- Written by `npm run test:servers -- --page`: do not edit below. -->';

/** The page docs/compatibility.md with these results: what is above the mark is written by hand. */
export function page(before: string, results: readonly Result[]): string {
  const [byHand] = before.split(MARK);
  return [byHand?.trimEnd(), MARK, ...matrix(results), versions()].join('\n\n').concat('\n');
}

function matrix(results: readonly Result[]): string[] {
  const servers = [...new Set(results.map(({ server }) => server))];
  const clients = [...new Set(results.map(({ client }) => client))];
  const dates = results.map(({ date }) => date).sort();
  const days = dates[0] === dates.at(-1) ? dates[0] : `${dates[0]} to ${dates.at(-1)}`;
  const total = results.reduce((sum, { passed }) => sum + passed, 0);
  const failed = results.reduce((sum, result) => sum + result.failed, 0);
  return [
    `Run on ${days}: ${total.toLocaleString('en')} tests passed, ${failed} failed. A cell names the types of lock whose contract suite passed, or "all"; "–" was not run.`,
    table(
      ['client', ...servers],
      clients.map((client) => [client, ...servers.map((server) => cell(results, server, client))]),
    ),
  ];
}

const TYPES = 5;

function cell(results: readonly Result[], server: string, client: string): string {
  const here = results.filter((result) => result.server === server && result.client === client);
  if (here.length === 0) return '–';
  const failed = here.filter((result) => result.failed > 0);
  const passed = here.filter((result) => result.failed === 0).map(({ type }) => type);
  const good = passed.length === TYPES ? 'all' : passed.join(', ');
  return [good, ...failed.map((one) => `**${one.type}: ${one.failed} failed**`)].filter(Boolean).join('; ');
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
