import { max, median, min } from 'simple-statistics';
import type { Candidate, CandidateKind } from './candidates/candidate';
import type { Language } from './programs';
import type { Curve, Figures, Metric, Scenario } from './scenarios/scenario';

/** One figure over all rounds. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly greatest: number;
}

export interface Row {
  readonly id: string;
  readonly title: string;
  readonly kind: CandidateKind;
  /** Of a peer that does not run in Node. */
  readonly language: Language | undefined;
  /** By metric id. */
  readonly values: Readonly<Record<string, Spread>>;
  /** Ratios to the floor of the same round, for metrics that have one. */
  readonly ratios: Readonly<Record<string, Spread>>;
  readonly violations: number;
  /** In some rounds it acquired too seldom during the warm-up for V8 to compile all of its code. */
  readonly isCold: boolean;
  /** Why figures are missing, or missing in some rounds. */
  readonly fault: string | undefined;
}

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly rows: readonly Row[];
}

/** A curve: the medians of each candidate, for each size. */
export interface GrowthResult {
  readonly curve: Curve;
  readonly metrics: readonly Metric[];
  readonly series: readonly {
    readonly title: string;
    readonly kind: CandidateKind;
    /** By metric id, for each size of the curve. */
    readonly points: readonly Row['values'][];
  }[];
  readonly faults: readonly string[];
}

/** The curves among the results. */
export function growthOf(results: readonly ScenarioResult[]): GrowthResult[] {
  const curves = new Set(results.flatMap(({ scenario }) => scenario.point?.curve ?? []));
  return [...curves].map((curve) => {
    const points = results.filter(({ scenario }) => scenario.point?.curve === curve);
    const first = points[0] as ScenarioResult;
    return {
      curve,
      metrics: first.scenario.metrics,
      series: first.rows.map(({ id, title, kind }) => ({
        title,
        kind,
        points: points.map(({ rows }) => rows.find((row) => row.id === id)?.values ?? {}),
      })),
      faults: points.flatMap(({ scenario, rows }) =>
        rows.flatMap(({ title, fault }) => (fault === undefined ? [] : `${title} in "${scenario.title}": ${fault}`)),
      ),
    };
  });
}

/** One round of one candidate: its figures, or its fault. */
export type Round = Figures | { readonly fault: string };

/** Combines the rounds of all candidates into one table. */
export function summarise(scenario: Scenario, rounds: ReadonlyMap<Candidate, readonly Round[]>): ScenarioResult {
  const floor = [...rounds].find(([{ id }]) => id === scenario.floor)?.[1] ?? [];
  const rows = [...rounds].map(([{ id, title, kind, language }, ofCandidate]): Row => {
    const values: Record<string, Spread> = {};
    const ratios: Record<string, Spread> = {};
    for (const metric of scenario.metrics) {
      const figures = ofCandidate.map((round) => figure(round, metric.id));
      add(values, metric.id, figures);
      if (metric.hasRatio)
        add(
          ratios,
          metric.id,
          figures.map((value, i) => value / figure(floor[i], metric.id)),
        );
    }
    const faults = ofCandidate.flatMap((round) => ('fault' in round ? [String(round.fault)] : []));
    const violations = ofCandidate.reduce((sum, round) => sum + (figure(round, 'violations') || 0), 0);
    const isCold = ofCandidate.some((round) => figure(round, 'cold') === 1);
    return { id, title, kind, language, values, ratios, violations, isCold, fault: faults[0] };
  });
  return { scenario, rows };
}

function figure(round: Round | undefined, metric: string): number {
  if (round === undefined || 'fault' in round) return Number.NaN;
  return (round as Figures)[metric] ?? Number.NaN;
}

function add(spreads: Record<string, Spread>, metric: string, figures: readonly number[]): void {
  const known = figures.filter(Number.isFinite);
  if (known.length > 0) spreads[metric] = { median: median(known), least: min(known), greatest: max(known) };
}
