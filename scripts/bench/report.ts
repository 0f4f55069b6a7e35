import { readFileSync } from 'node:fs';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { type Cells, figure } from '../../support/tables';
import type { Metric } from './figures';
import { candidates } from './libraries';
import type { Outcome, Row, Spread } from './runner';
import type { Curve, Scenario } from './scenarios';

export interface Figure extends Spread {
  /** To the floor of the same round. */
  readonly ratio?: number;
}

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly rows: readonly Row[];
}

export function ratio(value = Number.NaN): string {
  return `${value >= 100 ? figure(value) : value.toFixed(2)}×`;
}

/** What is printed while it is measured. */
export function lineOf({ metrics }: Scenario, { figures, fault }: Outcome): string {
  if (fault !== undefined) return `not measured: ${fault}`;
  return metrics
    .slice(0, 4)
    .map((metric) => `${metric}: ${figure(figures[metric])}`)
    .join('; ');
}

/** A table for the terminal; numbers are at the right. */
export function terminalTable(head: Cells, rows: readonly Cells[]): string {
  const colAligns = head.map((_, i) => (i === 0 ? 'left' : 'right') as 'left' | 'right');
  const table = new Table({ head: [...head], colAligns, style: { head: [], border: [] } });
  for (const row of rows) table.push([...row]);
  return String(table);
}

/** The medians of each candidate of a scenario, with the ratio to the floor in another line. */
function cellsOf({ scenario: { metrics }, rows }: ScenarioResult): Cells[] {
  const cell = ({ values, ratios }: Row, metric: Metric) => {
    const [value, toFloor] = [values[metric], ratios[metric]];
    if (value === undefined) return '–';
    return figure(value.median) + (toFloor === undefined ? '' : `\n${ratio(toFloor.median)}`);
  };
  return rows.map((row) => [row.candidate.title, ...metrics.map((metric) => cell(row, metric))]);
}

/** What a scenario prints at its end. */
export function scenarioTable(result: ScenarioResult): string {
  const { id, title, metrics, floor } = result.scenario;
  const head = metrics.map((metric) => metric.replaceAll(', ', '\n').replace(' for ', '\nfor '));
  const ratios = floor === undefined ? '' : ` (× ${floor} of the same round)`;
  const table = terminalTable(['', ...head], cellsOf(result));
  return [`\nScenario ${id}: ${title}${ratios}`, table, ...remarks(result.rows)].join('\n');
}

export function remarks(rows: readonly Row[]): string[] {
  const cold = rows.filter(({ isCold }) => isCold).map(({ candidate }) => candidate.title);
  const ofRows = rows.flatMap(({ candidate: { title }, fault, violations }) => [
    fault === undefined ? '' : `${title} was not measured: ${fault}.`,
    violations === 0 ? '' : `MUTUAL EXCLUSION VIOLATED: ${title}, ${violations} overlapping entries.`,
  ]);
  const ofCold = `Too seldom in the warm-up for V8 to compile all of their code: ${cold.join('; ')}.`;
  return [cold.length > 0 ? ofCold : '', ...ofRows].filter((remark) => remark !== '');
}

/** What is kept of the rows of a scenario. */
export function measuresOf(rows: readonly Row[]): Readonly<Record<string, Readonly<Record<string, Figure>>>> {
  const figures = rows.map(({ candidate, values, ratios }) => {
    const all = Object.entries(values).map(([metric, { median, least, greatest }]) => {
      const toFloor = ratios[metric as Metric]?.median;
      const spread = { median: rounded(median), least: rounded(least), greatest: rounded(greatest) };
      return [metric, toFloor === undefined ? spread : { ...spread, ratio: rounded(toFloor) }];
    });
    return [candidate.id, Object.fromEntries(all)];
  });
  return Object.fromEntries(figures);
}

const rounded = (value: number) => Number(value.toPrecision(3));

/** The curves among the results that were measured whole, each with its points. */
export function curvesOf(results: readonly ScenarioResult[]): Map<Curve, ScenarioResult[]> {
  const curves = new Map<Curve, ScenarioResult[]>();
  for (const result of results) {
    const { point } = result.scenario;
    if (point !== undefined) curves.set(point.curve, [...(curves.get(point.curve) ?? []), result]);
  }
  return new Map([...curves].filter(([{ sizes }, points]) => points.length === sizes.length));
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

/** The versions of this package and of all compared ones. */
export function versions(): Record<string, string> {
  const names = [...new Set(candidates.flatMap(({ packages }) => packages))].sort();
  const own = ['redis-lock-registry', versionOf(join(__dirname, '..', '..', 'package.json'))];
  return Object.fromEntries([own, ...names.map((name) => [name, installedVersion(name)])]);
}

/** Of a package that is compared. */
export function installedVersion(name: string): string {
  return versionOf(join(__dirname, 'node_modules', name, 'package.json'));
}

function versionOf(file: string): string {
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version.replace(/^v/, '');
}
