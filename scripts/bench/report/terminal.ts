import Table from 'cli-table3';
import type { Candidate } from '../candidates/candidate';
import type { Round, Row, ScenarioResult } from '../results';
import type { Figures, Scenario } from '../scenarios/scenario';
import type { Audience } from '../session';
import type { Verdict } from '../targets';
import { figure, ratio, verdict } from './format';

const style = { head: [], border: [] };

/** Says what was measured as soon as it is, and makes a table of each scenario. */
export class Terminal implements Audience {
  readonly #out: NodeJS.WriteStream;
  readonly #rounds: number;
  readonly #judge: (result: ScenarioResult) => Verdict[];

  constructor(out: NodeJS.WriteStream, rounds: number, judge: (result: ScenarioResult) => Verdict[]) {
    this.#out = out;
    this.#rounds = rounds;
    this.#judge = judge;
  }

  say(text: string): void {
    this.#out.write(`${text}\n`);
  }

  gathered({ id }: Scenario, round: number, turns: number): void {
    this.say(`${id.padEnd(2)} ${round + 1}/${this.#rounds}  all candidates, ${turns} short turns each`);
  }

  measured({ id, metrics }: Scenario, round: number, { title }: Candidate, outcome: Round): void {
    const figures = metrics.flatMap(({ id: name, unit, title: what }) => {
      const value = (outcome as Figures)[name];
      return value === undefined ? [] : [`${what} ${figure(value)}${unit && ` ${unit}`}`];
    });
    const text = 'fault' in outcome ? `did not run: ${outcome.fault}` : figures.slice(0, 4).join(', ');
    this.say(`${id.padEnd(2)} ${round + 1}/${this.#rounds}  ${title.padEnd(42)} ${text}`);
  }

  finished(result: ScenarioResult): void {
    const { scenario, rows } = result;
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
    this.say(
      `\nScenario ${scenario.id}: ${scenario.title}${scenario.floor ? ` (× ${scenario.floor} of the same round)` : ''}`,
    );
    this.say(table.toString());
    for (const { title, violations } of rows.filter((row) => row.violations > 0)) {
      this.say(`NO EXCLUSION: ${title} let ${violations} intruders in`);
    }
    this.verdicts(this.#judge(result));
  }

  verdicts(verdicts: readonly Verdict[]): void {
    for (const one of verdicts) {
      this.say(
        `${verdict(one).padEnd(12)} ${one.scenario.padEnd(2)} ${one.candidate}: ${one.target}: ${figure(one.value)}`,
      );
    }
    this.say('');
  }
}

function cells(row: Row, { metrics }: Scenario): (string | { content: string; colSpan: number })[] {
  if (Object.keys(row.values).length === 0) return [{ content: `did not run: ${row.fault}`, colSpan: metrics.length }];
  return metrics.map(({ id }) => {
    const value = row.values[id];
    const toFloor = row.ratios[id];
    if (value === undefined) return '–';
    return toFloor === undefined ? figure(value.median) : `${figure(value.median)}\n${ratio(toFloor.median)}`;
  });
}
