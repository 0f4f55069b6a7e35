import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { candidates } from './libraries';
import type { Round, Row, Spread } from './runner';
import { type Curve, GOALS, type Goal, type Metric, type Scenario } from './scenarios';

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly rows: readonly Row[];
}

/** Three significant digits, with thousands separators. */
export function figure(value: number): string {
  return Number.isFinite(value) ? value.toLocaleString('en', { maximumSignificantDigits: 3 }) : '–';
}

function ratio(value: number): string {
  return `${value >= 100 ? figure(value) : value.toFixed(2)} ×`;
}

const titleOf = ({ title, unit }: Metric, between = ', ') => (unit === '' ? title : `${title}${between}${unit}`);

/** What is printed while it is measured. */
export function lineOf({ metrics }: Scenario, outcome: Round): string {
  if ('fault' in outcome) return `not measured: ${outcome.fault}`;
  const known = metrics.filter(({ id }) => outcome[id] !== undefined).slice(0, 4);
  return known.map(({ id, title, unit }) => `${title} ${figure(outcome[id] as number)} ${unit}`.trim()).join(', ');
}

type Cells = readonly string[];

/** A table for the terminal; numbers are at the right. */
export function terminalTable(head: Cells, rows: readonly Cells[]): string {
  const colAligns = head.map((_, i) => (i === 0 ? 'left' : 'right') as 'left' | 'right');
  const table = new Table({ head: [...head], colAligns, style: { head: [], border: [] } });
  for (const row of rows) table.push([...row]);
  return String(table);
}

export function markdownTable(head: Cells, rows: readonly Cells[], isNumber = (column: number) => column > 0): string {
  const line = (cells: Cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (isNumber(i) ? '---:' : '---'))), ...rows.map(line)].join('\n');
}

/** What each candidate of a scenario has, as `show` shows it, with the ratio to the floor in another line. */
function cellsOf(
  { scenario: { metrics }, rows }: ScenarioResult,
  show: (spread: Spread, format: (value: number) => string) => string,
  newLine: string,
): Cells[] {
  return rows.map(({ candidate, values, ratios }) => {
    const cells = metrics.map(({ id }) => {
      const [value, toFloor] = [values[id], ratios[id]];
      if (value === undefined) return '–';
      return show(value, figure) + (toFloor === undefined ? '' : newLine + show(toFloor, ratio));
    });
    return [candidate.title, ...cells];
  });
}

/** What a scenario prints at its end. */
export function scenarioTable(result: ScenarioResult): string {
  const { id, title, metrics, floor } = result.scenario;
  const head = metrics.map((metric) => titleOf(metric, '\n').replaceAll(', ', ',\n').replace(' for ', '\nfor '));
  const ratios = floor === undefined ? '' : ` (× ${floor} of the same round)`;
  const table = terminalTable(
    ['', ...head],
    cellsOf(result, ({ median }, format) => format(median), '\n'),
  );
  return [`\nScenario ${id}: ${title}${ratios}`, table, ...remarks(result.rows)].join('\n');
}

function remarks(rows: readonly Row[]): string[] {
  const cold = rows.filter(({ isCold }) => isCold).map(({ candidate }) => candidate.title);
  return [
    cold.length > 0 && `Too seldom in the warm-up for V8 to compile all of their code: ${cold.join('; ')}.`,
    ...rows.map(({ candidate, fault }) => fault !== undefined && `${candidate.title} was not measured: ${fault}.`),
    ...rows.map(
      ({ candidate, violations }) =>
        violations > 0 && `MUTUAL EXCLUSION VIOLATED: ${candidate.title}, ${violations} overlapping entries.`,
    ),
  ].filter((remark) => remark !== false);
}

/** One line for each goal of a scenario and each of its candidates. */
export function goalLines({ scenario, rows }: ScenarioResult): string[] {
  const isLargest = scenario.point === undefined || scenario.point.size === scenario.point.curve.sizes.at(-1);
  return GOALS.filter((goal) => goal.scenario === scenario.id && isLargest).flatMap((goal) =>
    rows
      .filter(({ candidate }) => goal.candidates.includes(candidate.id))
      .map((row) => goalLine(goal, scenario, row, rows)),
  );
}

function goalLine({ metric, to, atLeast, atMost }: Goal, { id, metrics }: Scenario, row: Row, rows: readonly Row[]) {
  const medianOf = (of: Row | undefined) => of?.values[metric]?.median ?? Number.NaN;
  const other = rows.find(({ candidate }) => candidate.id === to);
  const measured = to === undefined ? medianOf(row) : medianOf(row) / medianOf(other);
  const value = to === 'floor' ? (row.ratios[metric]?.median ?? Number.NaN) : measured;
  const isMet = value >= (atLeast ?? Number.NEGATIVE_INFINITY) && value <= (atMost ?? Number.POSITIVE_INFINITY);
  const verdict = Number.isNaN(value) ? 'not measured' : isMet ? 'met' : 'MISSED';
  const wanted = atLeast === undefined ? `at most ${figure(atMost as number)}` : `at least ${figure(atLeast)}`;
  const unit = to === undefined ? '' : ` × ${to}`;
  const name = metrics.find((one) => one.id === metric)?.title ?? metric;
  return `${verdict.padEnd(12)} ${id.padEnd(3)} ${row.candidate.title}: ${name} ${wanted}${unit}: ${figure(value)}`;
}

/** The curves among the results, each with its points. */
export function curvesOf(results: readonly ScenarioResult[]): Map<Curve, ScenarioResult[]> {
  const curves = new Map<Curve, ScenarioResult[]>();
  for (const result of results) {
    const { point } = result.scenario;
    if (point !== undefined) curves.set(point.curve, [...(curves.get(point.curve) ?? []), result]);
  }
  return curves;
}

/** The median, with the least and the greatest where they differ. */
function spread({ median, least, greatest }: Spread, format = figure): string {
  const [middle, low, high] = [median, least, greatest].map(format);
  return low === high ? String(middle) : `${middle} (${low} – ${high})`;
}

/** The section of a scenario in docs/benchmarks.md. */
export function scenarioSection(result: ScenarioResult, measured: string): string {
  const { scenario, rows } = result;
  const floor = rows.find(({ candidate }) => candidate.id === scenario.floor)?.candidate.title;
  return [
    `## ${scenario.id}. ${scenario.title}`,
    ...(floor === undefined ? [] : [`Ratios (×) to \`${floor}\` in the same round.`]),
    markdownTable(['', ...scenario.metrics.map((metric) => titleOf(metric))], cellsOf(result, spread, '<br>')),
    ...remarks(rows),
    measured,
  ].join('\n\n');
}

/** The section of a curve in docs/growth.md. */
export function curveSection(curve: Curve, points: readonly ScenarioResult[], measured: string): string {
  const [{ scenario, rows }] = points as [ScenarioResult];
  const table = (metric: Metric) =>
    markdownTable(
      [`${titleOf(metric)}; ${curve.unit}:`, ...curve.sizes.map(figure)],
      rows.map(({ candidate }) => {
        const cells = points.map((point) => point.rows.find((row) => row.candidate === candidate)?.values[metric.id]);
        return [candidate.title, ...cells.map((cell) => (cell === undefined ? '–' : spread(cell)))];
      }),
    );
  return [
    `## ${curve.id}. ${curve.title}`,
    `![${curve.title}](${pictureOf(curve)})`,
    ...scenario.metrics.map(table),
    ...points.flatMap((point) => remarks(point.rows).map((remark) => `${point.scenario.title}: ${remark}`)),
    measured,
  ].join('\n\n');
}

/** The name of the picture of a curve, beside the page. */
export function pictureOf({ unit }: Curve): string {
  return `growth-${unit}.svg`;
}

/** What the figures depend on. It contains nothing that identifies the machine. */
export function environment(redis: string): string {
  const load = loadavg()[0] ?? 0;
  const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`;
  const busy = load < 1 ? '' : `; other work on the machine (load average ${load.toFixed(1)})`;
  const today = new Date().toISOString().slice(0, 10);
  return `${today}, ${machine}, ${platform()} ${arch()}; Node ${process.version}, ${redis}${busy}`;
}

/** The section with the versions of this package and of all compared ones. */
export function versionsSection(): string {
  const names = [...new Set(candidates.flatMap(({ packages }) => packages))].sort();
  const own = ['redis-lock-registry', versionOf(join(__dirname, '..', '..', 'package.json'))];
  const others = names.map((name) => [name, installedVersion(name)]);
  return ['## Versions', markdownTable(['package', 'version'], [own, ...others])].join('\n\n');
}

/** Of a package that is compared. */
export function installedVersion(name: string): string {
  return versionOf(join(__dirname, 'node_modules', name, 'package.json'));
}

function versionOf(file: string): string {
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version.replace(/^v/, '');
}
