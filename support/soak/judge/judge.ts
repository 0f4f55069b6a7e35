import { type JudgedLease, leasesIn, promisedUntil } from '../../judge/leases';
import type { WorkerRecord } from '../../judge/records';
import type { Violation } from '../../judge/violations';
import { exclusionViolations, TokenJudge } from '../../judge/violations';
import type { FaultJournal } from '../faults/fault-journal';
import { accountOf } from './account';

/** Violations of one kind of which an account is given; the others of a round only repeat it. */
const ACCOUNTS = 5;

export type ReportedViolation = Violation & { readonly account: string };

/** Judges what the processes wrote down, round by round. */
export class Judge {
  readonly violations: ReportedViolation[] = [];
  readonly #journal: FaultJournal;
  readonly #startedAt: number;
  readonly #tokens = new TokenJudge();
  /** Of processes that were killed: what they were promised outlives the round. */
  #promised: JudgedLease[] = [];

  constructor(journal: FaultJournal, startedAt: number) {
    this.#journal = journal;
    this.#startedAt = startedAt;
  }

  /** The records of each process, and what else was found in the round. */
  round(processes: readonly (readonly WorkerRecord[])[], found: readonly Violation[]): void {
    const leases = leasesIn(processes);
    const records = processes.flat();
    const violations = [
      ...exclusionViolations([...this.#promised, ...leases]),
      ...this.#tokens.violations(leases),
      ...records.flatMap((record) => (record.event === 'violation' ? [record] : [])),
      ...found,
    ];
    const counts = new Map<string, number>();
    for (const violation of violations.sort((a, b) => a.at - b.at)) {
      const count = (counts.get(violation.kind) ?? 0) + 1;
      counts.set(violation.kind, count);
      const { kind, text } = violation;
      const account =
        count > ACCOUNTS ? `${kind}: ${text}` : accountOf(violation, records, this.#journal.entries, this.#startedAt);
      this.violations.push({ ...violation, account });
    }
    const now = records.reduce((last, record) => ('at' in record ? Math.max(last, record.at) : last), 0);
    this.#promised = [...this.#promised, ...leases].filter((lease) => promisedUntil(lease) > now);
  }
}
