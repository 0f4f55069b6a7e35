import Table from 'cli-table3';
import type { LockType } from './plan';
import type { Outcome } from './simulation';
import { VIOLATION_KINDS, type ViolationKind } from './violations';

/** What many seeds of one lock type came to. */
export class Summary {
  readonly lockType: LockType;
  readonly failures: { readonly seed: number; readonly outcome: Outcome }[] = [];
  readonly #startedAt = performance.now();
  readonly #cpuBefore = process.cpuUsage();
  readonly #counts = new Map<ViolationKind, number>();
  #seeds = 0;
  #events = 0;

  constructor(lockType: LockType) {
    this.lockType = lockType;
  }

  add(seed: number, outcome: Outcome): void {
    this.#seeds++;
    this.#events += outcome.events;
    if (outcome.violations.length === 0) return;
    this.failures.push({ seed, outcome });
    for (const kind of new Set(outcome.violations.map((violation) => violation.kind))) {
      this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
    }
  }

  /** The cells of its row; the speed also counts processor time alone, for a machine that is busy with other things. */
  end(): Record<string, string | number> {
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    return {
      type: this.lockType,
      seeds: this.#seeds,
      failed: this.failures.length,
      ...Object.fromEntries([...this.#counts]),
      'seeds/s': Math.round((this.#seeds * 1_000) / (performance.now() - this.#startedAt)),
      'seeds/s of processor time': Math.round((this.#seeds * 1e6) / (user + system)),
      'events a seed': Math.round(this.#events / this.#seeds),
    };
  }
}

/** One row for each type; of the kinds of violation only those that were found. */
export function summaryTable(rows: readonly Record<string, string | number>[]): string {
  const found = VIOLATION_KINDS.filter((kind) => rows.some((row) => row[kind] !== undefined));
  const columns = ['type', 'seeds', 'failed', ...found, 'seeds/s', 'seeds/s of processor time', 'events a seed'];
  const table = new Table({ head: columns, style: { head: [], border: [] }, wordWrap: true });
  for (const row of rows) table.push(columns.map((column) => row[column] ?? 0));
  return table.toString();
}
