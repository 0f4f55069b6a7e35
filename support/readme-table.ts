import { figure, markdownTable } from './tables';

/** Of docs/benchmarks.json. */
interface Data {
  readonly scenarios: Readonly<
    Record<
      string,
      { readonly figures: Readonly<Record<string, Readonly<Record<string, { readonly median: number }>>>> }
    >
  >;
}

/** The columns of README's table: a metric of a scenario, and how it is shown. */
const README_COLUMNS: readonly (readonly [title: string, scenario: string, metric: string, shown: Shown])[] = [
  ['100 callers of one process, locks/s', '3', 'acquisitions, /s', figure],
  ['4 processes × 10 callers, locks/s', '4a', 'acquisitions, /s', figure],
  ['longest wait there', '4a', 'longest wait, ms', seconds],
  ['longest wait with 5 ms of work', '4b', 'longest wait, ms', seconds],
  ['commands for each with it', '4b', 'requests for each', twoDigits],
];
type Shown = (value: number | undefined) => string;

/** The rows of README's table, by candidate. */
const README_ROWS: readonly (readonly [candidate: string, title: string])[] = [
  ['spin', '`spin`, the default'],
  ['fenced', '`spin` with `fencing`'],
  ['released', '`spin` with `handOver: 0`'],
  ['pub-sub', '`pub-sub`'],
  ['fair', '`fair`'],
  ['redlock', 'redlock'],
  ['redis-semaphore', 'redis-semaphore'],
  ['verrou', 'verrou'],
];

export const README_CANDIDATES = README_ROWS.map(([candidate]) => candidate);

function twoDigits(value = Number.NaN): string {
  return figure(Number(value.toPrecision(2)));
}

function seconds(ms = Number.NaN): string {
  return `${twoDigits(ms / 1000)} s`;
}

/** The table of README.md: a row for each candidate that was measured in all of its scenarios. */
export function readmeTable({ scenarios: all }: Data): string {
  const rows = README_ROWS.flatMap(([candidate, title]) => {
    const medians = README_COLUMNS.map(([, id, metric]) => all[id]?.figures[candidate]?.[metric]?.median);
    if (medians.includes(undefined)) return [];
    return [[title, ...README_COLUMNS.map(([, , , shown], i) => shown(medians[i]))]];
  });
  return markdownTable(['', ...README_COLUMNS.map(([title]) => title)], rows);
}

/** The lines of README's table begin with its first column. */
export function withReadmeTable(readme: string, data: Data): string {
  const lines = readme.split('\n');
  const start = lines.findIndex((line) => line.includes(`| ${README_COLUMNS[0]?.[0]} |`));
  const end = lines.findIndex((line, i) => i > start && !line.startsWith('|'));
  return [...lines.slice(0, start), readmeTable(data), ...lines.slice(end)].join('\n');
}
