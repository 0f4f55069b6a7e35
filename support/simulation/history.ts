import type { Timeline } from './timeline';

/** What happened in a simulation, one line for each event; costs nothing unless it is recorded. */
export class History {
  readonly lines: string[] = [];
  readonly #timeline: Timeline;
  readonly #isRecorded: boolean;

  constructor(timeline: Timeline, isRecorded: boolean) {
    this.#timeline = timeline;
    this.#isRecorded = isRecorded;
  }

  note(who: string, text: () => string): void {
    if (!this.#isRecorded) return;
    this.lines.push(`${this.#timeline.now.toFixed(2).padStart(10)}  ${who.padEnd(8)}  ${text()}`);
  }
}
