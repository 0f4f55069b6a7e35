import { sharedNow } from '../awake-clock';

export interface FaultEntry {
  readonly kind: string;
  readonly target: string;
  readonly from: number;
  to: number;
}

/** When which fault was inflicted, on the clock that all processes of the machine share. */
export class FaultJournal {
  readonly entries: FaultEntry[] = [];

  begin(kind: string, target: string): FaultEntry {
    const entry = { kind, target, from: sharedNow(), to: Number.POSITIVE_INFINITY };
    this.entries.push(entry);
    return entry;
  }

  end(entry: FaultEntry): void {
    entry.to = sharedNow();
  }

  get counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { kind } of this.entries) counts[kind] = (counts[kind] ?? 0) + 1;
    return counts;
  }
}
