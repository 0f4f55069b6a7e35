import { inspect } from 'node:util';
import type { MultiLease } from '../distributed-lock';
import { leaseUnlocked } from '../errors';
import { leaseText } from '../lease/lease-text';
import { LossSignal } from '../lease/loss-signal';
import type { HeldLease } from '../lease/unlock-order';

/** The lease of several locks: it is held as long as each of them is. */
export class HeldMultiLease implements MultiLease, HeldLease {
  readonly key: string;
  readonly isReentry = false;
  readonly #leases: readonly HeldLease[];
  #unlocking: Promise<void> | undefined;
  #lossSignal: LossSignal | undefined;
  /** Ends the listening for losses. */
  readonly #over = new AbortController();

  constructor(key: string, leases: readonly HeldLease[]) {
    this.key = key;
    this.#leases = leases;
  }

  get owner(): string {
    return this.#leases[0]?.owner ?? '';
  }

  // Made when it is first read: most leases are unlocked before anybody reads it.
  get signal(): AbortSignal {
    if (this.#lossSignal === undefined) {
      const lossSignal = new LossSignal();
      this.#lossSignal = lossSignal;
      const onLoss = (): void => lossSignal.abort(this.lossError());
      for (const { signal } of this.#leases) {
        // A part that was entered again has the signal of the lease around it, which outlives this one.
        if (signal.aborted) onLoss();
        else signal.addEventListener('abort', onLoss, { once: true, signal: this.#over.signal });
      }
    }
    return this.#lossSignal.signal;
  }

  get remaining(): number {
    return this.isUnlocked ? 0 : Math.min(...this.#leases.map((lease) => lease.remaining));
  }

  get fencingToken(): undefined {
    return undefined;
  }

  get fencingTokens(): ReadonlyMap<string, number> {
    const tokens = new Map<string, number>();
    for (const { key, fencingToken } of this.#leases) if (fencingToken !== undefined) tokens.set(key, fencingToken);
    return tokens;
  }

  /** The lease of the part with this index. */
  leaseOf(index: number): HeldLease {
    return this.#leases[index] as HeldLease;
  }

  get isUnlocked(): boolean {
    return this.#unlocking !== undefined;
  }

  checkLost(): boolean {
    return this.#leases.some((lease) => lease.checkLost());
  }

  lossError(result?: unknown): Error {
    const lost = this.#leases.find((lease) => lease.checkLost()) ?? (this.#leases[0] as HeldLease);
    return lost.lossError(result);
  }

  assertHeld(): void {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    for (const lease of this.#leases) lease.assertHeld();
  }

  async renew(ttl?: number): Promise<void> {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    // In one tick of the event loop, so that the renewals go to Redis together.
    await settled(this.#leases.map((lease) => lease.renew(ttl)));
  }

  holdAtLeast(ms: number): void {
    for (const lease of this.#leases) lease.holdAtLeast(ms);
  }

  async eval(): Promise<never> {
    const why = 'a script is checked against one lock: take a lease with `obtain(key).lock()` for it';
    throw new TypeError(`The lease of ${this.#leases.length} keys cannot run a script: ${why}`);
  }

  unlock(): Promise<void> {
    if (this.#unlocking !== undefined) return this.#unlocking.catch(() => undefined);
    this.#over.abort();
    this.#unlocking = settled(this.#leases.map((lease) => lease.unlock()));
    return this.#unlocking;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#unlocking !== undefined) return;
    this.#over.abort();
    this.#unlocking = Promise.all(this.#leases.map((lease) => lease[Symbol.asyncDispose]())).then(() => undefined);
    await this.#unlocking;
  }

  /** What `console.log(lease)` prints: no internals. */
  [inspect.custom](): string {
    return leaseText('MultiLease', this);
  }
}

/** Waits for all of them, and throws the first error. */
async function settled(promises: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
