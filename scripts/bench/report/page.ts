import { isServerAlone } from '../cpu-sets';
import type { Options } from '../options';
import type { Row, ScenarioResult, Spread } from '../results';
import type { Environment } from './environment';
import { figure, ratio } from './format';
import { method, QUICK_WARM_UP } from './method';

/** The page docs/benchmarks.md: all figures, in Markdown. */
export function page(
  environment: Environment,
  options: Options,
  results: readonly ScenarioResult[],
  leftOut: readonly string[],
  /** The section of `--profile`, of an earlier run. */
  profiles = '',
): string {
  return [
    '# Benchmarks',
    'Written by `npm run bench -- --page`; do not edit.',
    introduction(environment, options),
    'Cells show the median, with the minimum and maximum in parentheses. "floor" is no library but the least that a lock on node-redis costs; the second line of a cell is the ratio to it. Details are under [Method](#method).',
    ...leftOut.map((reason) => `Left out: ${reason}.`),
    ...results.filter(({ scenario }) => scenario.point === undefined).map(section),
    'Scenario 9, how cost grows, has [a page of its own](growth.md).',
    ...(profiles === '' ? [] : [profiles]),
    method(options, isServerAlone),
    '## Versions',
    table(['package', 'version'], Object.entries(environment.versions)),
  ]
    .join('\n\n')
    .concat('\n');
}

export function introduction(environment: Environment, { quick, rounds }: Options): string {
  const size = quick
    ? `A quick run (${rounds === 1 ? 'one round' : `${rounds} rounds`}, short windows, without variants of candidates and scenarios). ${QUICK_WARM_UP}`
    : `${rounds === 1 ? 'One round' : `${rounds} rounds`}.`;
  const { date, cpu, cores, memory, system, node, redis, load } = environment;
  const business =
    load < 1 ? '' : ` The machine was busy with other work: its load average was ${load} when the run began.`;
  return `${date}. ${cpu}, ${cores} cores, ${memory} GiB, ${system}; Node ${node}, ${redis}. ${size}${business}`;
}

function section({ scenario, rows }: ScenarioResult): string {
  const faults = rows.filter(({ fault }) => fault !== undefined);
  const cold = rows.filter(({ isCold }) => isCold).map(({ title }) => title);
  const violators = rows.filter(({ violations }) => violations > 0);
  return [
    `## ${scenario.id}. ${scenario.title}`,
    ...(scenario.floor === undefined
      ? []
      : [`Ratios (×) to \`${rows.find(({ id }) => id === scenario.floor)?.title}\` in the same round.`]),
    table(
      ['', ...scenario.metrics.map(({ title, unit }) => `${title}${unit && `, ${unit}`}`)],
      rows.map((row) => [row.title, ...scenario.metrics.map(({ id }) => cell(row, id))]),
    ),
    ...(cold.length === 0
      ? []
      : [`Acquired too seldom during the [warm-up](#method) for V8 to compile all of their code: ${cold.join('; ')}.`]),
    ...faults.map(({ title, fault }) => `${title} was not measured: ${fault}.`),
    ...violators.map(
      ({ title, violations }) => `**Mutual exclusion violated**: ${title}, ${violations} overlapping entries.`,
    ),
  ].join('\n\n');
}

function cell({ values, ratios }: Row, metric: string): string {
  const value = values[metric];
  const toFloor = ratios[metric];
  if (value === undefined) return '–';
  return toFloor === undefined ? spread(value) : `${spread(value)}<br>${spread(toFloor, ratio)}`;
}

/** The median, with the least and the greatest where they differ. */
export function spread({ median, least, greatest }: Spread, format: (value: number) => string = figure): string {
  const [middle, low, high] = [median, least, greatest].map(format);
  return low === high ? String(middle) : `${middle} (${low} – ${high})`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}
