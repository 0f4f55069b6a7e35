import type { Candidate, CandidateKind } from '../candidates/candidate';
import type { Language } from '../programs';
import type { Measurement, RunPlan } from '../running-candidate';

/** The figures of one candidate in one round, by metric id. NaN: no figure. */
export type Figures = Readonly<Record<string, number>>;

export interface Metric {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** Whether the figure is also shown as a ratio to the floor. */
  readonly hasRatio: boolean;
}

/** How the figures change with the size of something. Its scenarios differ in the size only. */
export interface Curve {
  readonly id: string;
  /** For the name of its picture. */
  readonly name: string;
  readonly title: string;
  /** What the sizes count. */
  readonly unit: string;
  /** Powers of one number. */
  readonly sizes: readonly number[];
  /** Where the curves bend, and why. */
  readonly explanation?: string;
}

export interface Scenario {
  /** A number, with a letter where there are variants. */
  readonly id: string;
  readonly title: string;
  /** Where it is on a curve, if it is. */
  readonly point?: { readonly curve: Curve; readonly size: number };
  /** Similar to another scenario, or long; left out with --quick unless it is named. */
  readonly isVariant?: boolean;
  /** The candidate whose figures all others are compared with. */
  readonly floor: string | undefined;
  readonly metrics: readonly Metric[];
  /** Their peers take part even if the option --peers does not ask for them; not with --quick, unless it is named. */
  readonly languages?: readonly Language[];
  suits(candidate: Candidate): boolean;
  /** With --quick, the windows are shorter. */
  plan(isQuick: boolean): RunPlan;
  /** Includes `violations` if the lock is contended; the run fails unless they are 0. */
  figures(measurement: Measurement): Figures;
}

/** Whether the option --scenario selects it: by its id, or by its number alone, which selects all variants. */
export function isNamed({ id }: Pick<Scenario, 'id'>, name: string): boolean {
  return id === name || id.replace(/[a-z]$/, '') === name;
}

/** Suits all libraries with default options, and of floors and candidates with others only these. */
export function librariesAnd(...others: string[]): (candidate: Candidate) => boolean {
  const needsName: readonly CandidateKind[] = ['floor', 'observed', 'replicated', 'semaphore', 'readWrite'];
  return ({ id, kind }) => !needsName.includes(kind) || others.includes(id);
}

export function metric(id: string, title: string, unit = '', hasRatio = true): Metric {
  return { id, title, unit, hasRatio };
}
