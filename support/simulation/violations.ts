import type { History } from './history';
import type { Timeline } from './timeline';

/** What a simulation may find wrong, in a few words each: the columns of the summary. */
export const VIOLATION_KINDS = [
  'two holders',
  'too many permits',
  'lease without key',
  'not replicated',
  'loss not noticed',
  'began before the end',
  'taken from who is not told',
  'not told',
  'not asked',
  'end not known',
  'eval in another lease',
  'eval ran twice',
  'token',
  'free lock left alone',
  'refused though free',
  'overtaken',
  'starved',
  'not settled',
  'not waiting',
  'late',
  'silence',
  'failed though calm',
  'lost though confirmed',
  'lost though renewed',
  'lost on the way',
  'not once',
  'left in Redis',
  'min hold',
  'strange error',
  'foreign context',
  'unhandled rejection',
  'timer left',
  'left behind',
  'too many connections',
  'too many commands',
] as const;

export type ViolationKind = (typeof VIOLATION_KINDS)[number];

export interface Violation {
  readonly kind: ViolationKind;
  /** Virtual ms. */
  readonly time: number;
  readonly text: string;
}

/** Collects what was found; each kind once for each subject. */
export class Violations {
  readonly all: Violation[] = [];
  readonly #seen = new Set<string>();
  readonly #timeline: Timeline;
  readonly #history: History;

  constructor(timeline: Timeline, history: History) {
    this.#timeline = timeline;
    this.#history = history;
  }

  /** Nothing else is looked for. */
  only: readonly ViolationKind[] = VIOLATION_KINDS;

  report(kind: ViolationKind, subject: string, text: string): void {
    if (!this.only.includes(kind)) return;
    const id = `${kind}/${subject}`;
    if (this.#seen.has(id)) return;
    this.#seen.add(id);
    this.all.push({ kind, time: this.#timeline.now, text });
    this.#history.note('!!!', () => `${kind}: ${text}`);
  }
}
