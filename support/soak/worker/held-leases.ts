import type { Lease, LockLostError, MultiLease } from '../../../lib';
import type { Sample } from '../../judge/records';
import { sharedNow } from '../awake-clock';
import type { RecordFile } from './record-file';
import type { Request } from './requests';

/** ms between two records of one lease, while nothing holds the process up. */
const EVERY = 40;
/** ms; after a pause of this length every lease is read at once, before any timer of the library may have run. */
const PAUSE = 30;

interface Held {
  readonly call: string;
  readonly lease: Lease;
  recordedAt: number;
}

/** Writes down what the leases of this process say of themselves from the grant until their unlock begins. */
export class HeldLeases {
  readonly #records: RecordFile;
  readonly #held = new Map<Lease, Held>();

  constructor(records: RecordFile) {
    this.#records = records;
  }

  granted(call: string, { key }: Request, lease: Lease | MultiLease): void {
    const sample = sampleOf(lease);
    const token = 'fencingTokens' in lease ? lease.fencingTokens.get(key) : lease.fencingToken;
    this.#records.write({ event: 'granted', call, token, sample });
    this.#held.set(lease, { call, lease, recordedAt: sample.to });
    lease.signal.addEventListener('abort', () => {
      const { reason, by } = lease.signal.reason as LockLostError;
      this.#records.write({ event: 'lost', call, reason, by, at: sharedNow() });
    });
  }

  /** From now on nobody relies on the lease. */
  unlocking(lease: Lease): void {
    const held = this.#held.get(lease);
    if (held === undefined) return;
    this.#held.delete(lease);
    this.#records.write({ event: 'unlocking', call: held.call, sample: sampleOf(lease) });
  }

  /** Called at every tick of the process, with the ms since the one before. */
  tick(gap: number): void {
    for (const held of this.#held.values()) {
      if (gap < PAUSE && sharedNow() - held.recordedAt < EVERY) continue;
      const sample = sampleOf(held.lease);
      held.recordedAt = sample.to;
      this.#records.write({ event: 'seen', call: held.call, sample });
    }
  }
}

function sampleOf(lease: Lease): Sample {
  const from = sharedNow();
  const { remaining } = lease;
  return { from, to: sharedNow(), remaining };
}
