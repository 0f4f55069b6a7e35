import type { Outcome, WorkerRecord } from '../judge/records';
import type { Violation } from '../judge/violations';
import type { SoakType } from './settings';

/** What one type did and suffered. */
export interface SoakResult {
  readonly type: SoakType;
  readonly rounds: number;
  readonly acquisitions: number;
  /** Leases that a call has taken whose process is named by their loss, and questions that a holder has heard. */
  readonly replaced: number;
  readonly asked: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Calls that their process did not live to see settled. */
  readonly killed: number;
  /** Locks taken in calm, by each worker in each round. */
  readonly inCalm: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly violations: readonly (Violation & { readonly account: string })[];
}

export class Tally {
  acquisitions = 0;
  replaced = 0;
  asked = 0;
  killed = 0;
  inCalm = 0;
  rounds = 0;
  readonly outcomes: Record<Outcome, number> = {
    unlocked: 0,
    refused: 0,
    'timed out': 0,
    aborted: 0,
    unavailable: 0,
    closed: 0,
    lost: 0,
    'release unknown': 0,
    unexpected: 0,
  };

  /** All records of one process that have not been counted before. */
  count(records: readonly WorkerRecord[]): void {
    for (const record of records) {
      if (record.event === 'called') this.killed++;
      if (record.event === 'granted') this.acquisitions++;
      // What a release finds, its signal has said before.
      if (record.event === 'lost' && record.by !== undefined && record.early === undefined) this.replaced++;
      if (record.event === 'asked' && record.isHeard) this.asked++;
      if (record.event !== 'settled') continue;
      this.killed--;
      this.outcomes[record.outcome]++;
    }
  }
}
