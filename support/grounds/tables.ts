import { markdownTable } from '../tables';
import type { Cell } from './cell';
import type { Outcome } from './run-cell';

/** An outcome, and the day of it: `2026-11-28`. */
export type Result = Outcome & { readonly date: string };

/** A part of a page between two marks, which this command writes. */
export interface Part {
  readonly page: string;
  readonly mark: string;
  text(results: readonly Result[]): string;
}

export const PARTS: readonly Part[] = [
  {
    page: 'docs/frameworks.md',
    mark: 'runtimes',
    text: (all) => dated(all, ['runtime', 'worker'], (some) => table(['runtime', 'with'], some, byTitle)),
  },
  {
    page: 'docs/frameworks.md',
    mark: 'frameworks',
    text: (all) => dated(all, ['framework', 'bundler', 'typescript'], (some) => table(['what', 'with'], some, byTitle)),
  },
  {
    page: 'docs/redis.md',
    mark: 'clients',
    text: (all) => dated(all, ['runtime'], (some) => table(['client', 'on'], some, byClient)),
  },
  {
    page: 'docs/redis.md',
    mark: 'servers',
    text: (all) => dated(real(all), ['server'], (some) => table(['server', 'through'], some, byTitle)),
  },
  {
    page: 'docs/testing.md',
    mark: 'fakes',
    text: (all) => dated(fakes(all), ['server'], (some) => table(['fake', 'through'], some, byTitle)),
  },
  {
    page: 'docs/testing.md',
    mark: 'runners',
    text: (all) => dated(all, ['runner'], (some) => table(['runner', 'on'], some, byTitle)),
  },
  { page: 'README.md', mark: 'grounds', text: proof },
];

const FAKES = ['server/js-redis-server', 'server/miniredis'];
const fakes = (all: readonly Result[]) => all.filter(({ name }) => FAKES.includes(name));
const real = (all: readonly Result[]) => all.filter(({ name }) => !FAKES.includes(name));

const byTitle = ({ title, through }: Result) => [title, through] as const;
const byClient = ({ title, through }: Result) => [through, title] as const;

/** The text of each part, by its mark. A cell that was never run is missing in none of them: it is said to be so. */
export function textsOf(cells: readonly Cell[], results: ReadonlyMap<string, Result>): Map<string, string> {
  const all = cells.map((cell): Result => results.get(cell.name) ?? neverRun(cell));
  return new Map(PARTS.map(({ mark, text }) => [mark, text(all)]));
}

function neverRun({ name, ground, title, through }: Cell): Result {
  return {
    name,
    ground,
    title,
    through,
    passed: 0,
    faults: [],
    notHad: 'so far it was left out',
    seconds: 0,
    date: '',
  };
}

function dated(all: readonly Result[], grounds: readonly string[], text: (some: readonly Result[]) => string): string {
  const some = all.filter(({ ground }) => grounds.includes(ground));
  const dates = [...new Set(some.map(({ date }) => date).filter(Boolean))].sort();
  const days = [...new Set([dates[0], dates.at(-1)])].join(' to ');
  return `${text(some)}\n\nSeen on ${days || 'no day'}, by \`npm run grounds\`.`;
}

type Pair = (result: Result) => readonly [row: string, other: string];

/** One row for each of what is run, with all that it was run with, and the result. */
function table(head: readonly [string, string], results: readonly Result[], pair: Pair): string {
  const rows = new Map<string, Result[]>();
  for (const result of results) {
    const [row] = pair(result);
    rows.set(row, [...(rows.get(row) ?? []), result]);
  }
  const lines = [...rows].map(([row, some]) => {
    const wasRun = some.filter(({ notHad }) => notHad === undefined);
    const failed = wasRun.filter(({ faults }) => faults.length > 0);
    const passed = wasRun.reduce((sum, one) => sum + one.passed, 0);
    const all = wasRun.reduce((sum, { faults }) => sum + faults.length, passed);
    const result = [
      ...(wasRun.length > 0 ? [`${passed} of ${all} passed`] : []),
      ...failed.map((one) => `**failed** with ${pair(one)[1]}: ${inCell(one.faults)}`),
      ...[...byReason(some)].map(([reason, those]) =>
        wasRun.length === 0
          ? `not run: ${reason}`
          : `not run with ${those.map((one) => pair(one)[1]).join(', ')}: ${reason}`,
      ),
    ];
    return [row, [...new Set(wasRun.map((one) => pair(one)[1]))].join(', ') || '–', result.join('; ')];
  });
  return markdownTable([...head, 'checks'], lines, () => false);
}

function byReason(results: readonly Result[]): Map<string, Result[]> {
  const reasons = new Map<string, Result[]>();
  for (const result of results)
    if (result.notHad !== undefined) {
      const reason = inCell([result.notHad]);
      reasons.set(reason, [...(reasons.get(reason) ?? []), result]);
    }
  return reasons;
}

/** The first line of what failed, for a table. */
function inCell(texts: readonly string[]): string {
  const first = texts.map((text) => text.split('\n')[0]?.replaceAll('|', '\\|').slice(0, 160));
  return first.join('; ');
}

/** One line for the first screen: it names what was seen to work, and nothing else. */
function proof(all: readonly Result[]): string {
  const good = all.filter(({ faults, notHad }) => faults.length === 0 && notHad === undefined);
  const titles = (ground: string) => [
    ...new Set(good.filter((one) => one.ground === ground).map(({ title }) => title)),
  ];
  const [nodes, others] = [titles('runtime').filter(isNode), titles('runtime').filter((title) => !isNode(title))];
  const lines = [...new Set(nodes.map((title) => /\d+/.exec(title)?.[0]))];
  const runtimes = [
    `Node ${lines.join(', ')}`,
    ...others,
    ...titles('worker').map((title) => title.split(' ')[0] ?? ''),
  ].map((title) => title.replace(/(\d+\.\d+)\.\d+\S*/, '$1'));
  const checks = good.reduce((sum, { passed }) => sum + passed, 0).toLocaleString('en');
  return `It runs on ${runtimes.join(', ')}: [shown](docs/frameworks.md#runtimes) by \`npm run grounds\`, ${checks} checks of the packed library.`;
}

const isNode = (title: string) => title.startsWith('Node');
