import Table from 'cli-table3';
import type { Candidate } from '../candidates/candidate';
import type { ProgressListener } from '../measure';
import type { Profile } from '../profile/measure-profile';
import { hottestFunctions, tableOf } from '../profile/tables';
import type { GrowthResult, Round, Row, ScenarioResult } from '../results';
import type { Figures, Scenario } from '../scenarios/scenario';
import type { TargetResult } from '../targets';
import { figure, ratio } from './format';

const style = { head: [], border: [] };

/** Prints each outcome as it is measured, a table for each scenario, and the targets. */
export class Terminal implements ProgressListener {
  readonly #out: NodeJS.WriteStream;
  readonly #rounds: number;

  constructor(out: NodeJS.WriteStream, rounds: number) {
    this.#out = out;
    this.#rounds = rounds;
  }

  print(text: string): void {
    this.#out.write(`${text}\n`);
  }

  alternatingRoundStarted(scenario: Scenario, round: number, slices: number): void {
    this.print(
      `${labelOf(scenario)} ${round + 1}/${this.#rounds}  all candidates in alternation, ${slices} windows each`,
    );
  }

  measured(scenario: Scenario, round: number, { title }: Candidate, outcome: Round): void {
    const figures = scenario.metrics.flatMap(({ id: name, unit, title: what }) => {
      const value = (outcome as Figures)[name];
      return value === undefined ? [] : [`${what} ${figure(value)}${unit && ` ${unit}`}`];
    });
    const text = 'fault' in outcome ? `not measured: ${outcome.fault}` : figures.slice(0, 4).join(', ');
    this.print(`${labelOf(scenario)} ${round + 1}/${this.#rounds}  ${title.padEnd(42)} ${text}`);
  }

  finished({ scenario, rows }: ScenarioResult): void {
    this.#printViolations(rows);
    if (scenario.point !== undefined) return; // `printGrowth` shows it
    const table = new Table({
      head: [
        '',
        ...scenario.metrics.map(
          ({ title, unit }) =>
            `${title.replaceAll(', ', ',\n').replace(/ (for|of|to) /, '\n$1 ')}${unit && `\n${unit}`}`,
        ),
      ],
      colAligns: ['left', ...scenario.metrics.map(() => 'right' as const)],
      style,
    });
    for (const row of rows) table.push([row.title, ...cells(row, scenario)]);
    this.print(
      `\nScenario ${scenario.id}: ${scenario.title}${scenario.floor ? ` (× ${scenario.floor} of the same round)` : ''}`,
    );
    const cold = rows.filter(({ isCold }) => isCold).map(({ title }) => title);
    if (cold.length > 0) this.print(`${table}\nNot compiled fully: ${cold.join('; ')}\n`);
    else this.print(`${table}\n`);
  }

  #printViolations(rows: readonly Row[]): void {
    for (const { title, violations } of rows.filter((row) => row.violations > 0)) {
      this.print(`MUTUAL EXCLUSION VIOLATED: ${title}, ${violations} overlapping entries`);
    }
  }

  /** One table for each metric of a curve. */
  printGrowth({ curve, metrics, series }: GrowthResult): void {
    this.print(`\nScenario ${curve.id}: ${curve.title}`);
    for (const { id, title, unit } of metrics) {
      const head = [`${title}, ${unit}; ${curve.unit}:`, ...curve.sizes.map((size) => size.toLocaleString('en'))];
      const table = new Table({ head, colAligns: ['left', ...curve.sizes.map(() => 'right' as const)], style });
      for (const one of series)
        table.push([one.title, ...one.points.map((values) => figure(values[id]?.median ?? Number.NaN))]);
      this.print(`${table}`);
    }
  }

  /** A table, and which functions of the library take most. */
  printProfile(profile: Profile): void {
    const { title, head, rows } = tableOf(profile);
    const table = new Table({ head: [...head], colAligns: head.map((_, i) => (i === 0 ? 'left' : 'right')), style });
    for (const row of rows) table.push([...row]);
    this.print(`\n${title}\n${table}`);
    for (const cost of profile.costs) {
      const hottest = hottestFunctions(cost, 12);
      if (hottest.length > 0) this.print(`${cost.candidate.title}: ${hottest.join(', ')}`);
    }
  }

  /** A missed target is followed by its explanation, if there is one. */
  printTargets(targets: readonly TargetResult[]): void {
    this.print('Targets');
    for (const { scenario, candidate, target, value, isMet, explanation } of targets) {
      const status = isMet === undefined ? 'not measured' : isMet ? 'met' : 'MISSED';
      this.print(`${status.padEnd(12)} ${scenario.padEnd(2)} ${candidate}: ${target}: ${figure(value)}`);
      if (explanation !== undefined) this.print(`${''.padEnd(15)} ${explanation}`);
    }
  }
}

function labelOf({ id, point }: Scenario): string {
  return point === undefined
    ? id.padEnd(3)
    : `${id} ${point.size.toLocaleString('en').padStart(6)} ${point.curve.unit}`;
}

function cells(row: Row, { metrics }: Scenario): (string | { content: string; colSpan: number })[] {
  if (Object.keys(row.values).length === 0) return [{ content: `not measured: ${row.fault}`, colSpan: metrics.length }];
  return metrics.map(({ id }) => {
    const value = row.values[id];
    const toFloor = row.ratios[id];
    if (value === undefined) return '–';
    return toFloor === undefined ? figure(value.median) : `${figure(value.median)}\n${ratio(toFloor.median)}`;
  });
}
