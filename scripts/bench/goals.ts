import { figure } from '../../support/tables';
import { candidateNamed } from './libraries';
import type { Scenario } from './scenarios';

/** What was measured in a scenario, by the id of a candidate and by metric; `ratio`: to the floor of the same round. */
export type Measures = Readonly<
  Record<string, Readonly<Record<string, { readonly median: number; readonly ratio?: number }>>>
>;

/** What became of one goal for one candidate. */
export interface Judged {
  readonly scenario: string;
  readonly candidate: string;
  readonly metric: string;
  readonly wanted: string;
  readonly value: number;
  readonly isMet: boolean;
}

/** The goals of a scenario for the candidates that were measured. Of a curve, at its largest size. */
export function judged({ id, point, goals = [] }: Scenario, measures: Measures): Judged[] {
  if (point !== undefined && point.size !== point.curve.sizes.at(-1)) return [];
  return goals.flatMap(([names, metric, bound, limit, to]) =>
    names.flatMap((name) => {
      const own = measures[name]?.[metric];
      const ratioToOther = (own?.median ?? Number.NaN) / (measures[to ?? '']?.[metric]?.median ?? Number.NaN);
      const value = to === undefined ? own?.median : to === 'floor' ? own?.ratio : ratioToOther;
      if (value === undefined || Number.isNaN(value)) return [];
      const wanted = `${bound} ${figure(limit)}${to === undefined ? '' : ` × ${to}`}`;
      const isMet = bound === '≤' ? value <= limit : value >= limit;
      return [{ scenario: id, candidate: candidateNamed(name).title, metric, wanted, value, isMet }];
    }),
  );
}

/** A line for the terminal. */
export function goalLine({ scenario, candidate, metric, wanted, value, isMet }: Judged): string {
  return `${(isMet ? 'met' : 'MISSED').padEnd(7)} ${scenario.padEnd(3)} ${candidate}: ${metric} ${wanted}: ${figure(value)}`;
}
