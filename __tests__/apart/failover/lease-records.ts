import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DistributedLock, Lease, LockLostError, LockOptions } from '../../../lib';
import type { Access, Stay } from '../../../support/judge/exclusion';
import type { Sample, WorkerRecord } from '../../../support/judge/records';

/** ms between two readings of a lease. */
const EVERY = 40;

/** For how long a caller relies on a lock. */
type MutableStay = Stay<string> & { to: number };

/** What one process sees of its leases, as a worker of the soak writes it down. */
export class LeaseRecords {
  readonly stays: MutableStay[] = [];
  readonly #process: string;
  readonly #records: WorkerRecord[] = [];
  readonly #held = new Map<Lease, MutableStay>();
  readonly #timer: NodeJS.Timeout;
  #calls = 0;

  constructor(process: string) {
    this.#process = process;
    this.#timer = setInterval(() => this.#look(), EVERY);
  }

  async lock(lock: DistributedLock, access: Access, options: LockOptions = {}): Promise<Lease> {
    const call = `${this.#process}-${++this.#calls}`;
    const { key } = lock;
    const { permits = 1 } = options;
    const at = performance.now();
    this.#records.push({ event: 'called', call, key, access, permits, others: [], what: 'lock', at });
    const lease = await lock.lock(options);
    this.#records.push({ event: 'granted', call, token: lease.fencingToken, sample: sampleOf(lease) });
    const stay = { call, key, access, permits, from: performance.now(), to: Number.POSITIVE_INFINITY };
    this.stays.push(stay);
    this.#held.set(lease, stay);
    lease.signal.addEventListener('abort', () => {
      const { reason } = lease.signal.reason as LockLostError;
      stay.to = Math.min(stay.to, performance.now());
      this.#records.push({ event: 'lost', call, reason, at: stay.to });
      this.#held.delete(lease);
    });
    return lease;
  }

  async unlock(lease: Lease): Promise<void> {
    const stay = this.#held.get(lease);
    if (stay === undefined) return lease.unlock();
    const { call } = stay;
    this.#held.delete(lease);
    stay.to = performance.now();
    this.#records.push({ event: 'unlocking', call, sample: sampleOf(lease) });
    await lease.unlock();
    this.#records.push({ event: 'settled', call, outcome: 'unlocked', at: performance.now() });
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  keep(folder: string): void {
    mkdirSync(folder, { recursive: true });
    const lines = this.#records.map((record) => `${JSON.stringify(record)}\n`);
    writeFileSync(join(folder, `${this.#process}.jsonl`), lines.join(''));
  }

  #look(): void {
    for (const [lease, { call }] of this.#held) this.#records.push({ event: 'seen', call, sample: sampleOf(lease) });
  }
}

function sampleOf(lease: Lease): Sample {
  const from = performance.now();
  const { remaining } = lease;
  return { from, to: performance.now(), remaining };
}
