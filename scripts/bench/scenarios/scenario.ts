import type { Candidate } from '../candidates/candidate';
import type { Play, Seen } from '../performer';

/** What was measured of one candidate in one round, by the name of the metric. NaN: there is none. */
export type Figures = Readonly<Record<string, number>>;

export interface Metric {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** Whether a ratio to the floor tells anything. */
  readonly hasRatio: boolean;
}

export interface Scenario {
  readonly id: string;
  /** As the option --scenario knows it. */
  readonly number: number;
  readonly title: string;
  /** Much like another one; left out when it has to be quick. */
  readonly isVariant?: boolean;
  /** The candidate whose figures all others are compared with. */
  readonly floor: string | undefined;
  readonly metrics: readonly Metric[];
  suits(candidate: Candidate): boolean;
  /** What a candidate has to do; less of it when it has to be quick. */
  play(isQuick: boolean): Play;
  /** Wherever a lock is contended, with `violations`: unless there are none, the run fails. */
  figures(seen: Seen): Figures;
}

/** Everybody, and of the floors only these. */
export function everybodyAnd(...floors: string[]): (candidate: Candidate) => boolean {
  return ({ id, kind }) => kind !== 'floor' || floors.includes(id);
}

export function metric(id: string, title: string, unit = '', hasRatio = true): Metric {
  return { id, title, unit, hasRatio };
}
