import { inspect } from 'node:util';
import type { MultiLease } from '../api/distributed-lock';
import { type LockLostError, leaseUnlocked } from '../api/errors';
import { type EndOfSection, type InternalLease, leaseText } from '../core/internal-lease';
import { LossSignal } from '../core/loss';
import { doesNotTravel } from '../core/passport';
import { listen, unlisten } from '../core/wait';

/** The lease of several locks: it is held as long as each of them is. */
export class MultiKeyLease implements MultiLease, InternalLease {
  readonly key: string;
  /** The leases of the parts. */
  readonly leases: readonly InternalLease[];
  readonly fencingToken = undefined;
  publishEnd: EndOfSection | undefined;
  #unlocking: Promise<void> | undefined;
  #lossSignal: LossSignal | undefined;
  /** Made when `asked` is first read: listens for the first part that is asked for. */
  #asked: { readonly signal: AbortSignal; interrupt(reason: unknown): void } | undefined;
  /** Listens for the loss of each part. */
  #onLoss: (() => void) | undefined;

  constructor(key: string, leases: readonly InternalLease[]) {
    this.key = key;
    this.leases = leases;
  }

  /** Whether this lease enters all of its locks again. */
  get isReentry(): boolean {
    return this.leases.every((lease) => lease.isReentry);
  }

  get owner(): string {
    return this.leases[0]?.owner ?? '';
  }

  // Made when it is first read: most leases are unlocked before anybody reads it.
  get signal(): AbortSignal {
    if (this.#lossSignal === undefined) {
      const lossSignal = new LossSignal();
      this.#lossSignal = lossSignal;
      const onLoss = (): void => {
        lossSignal.abort(this.lossError());
        for (const lease of this.leases) this.#unlisten(lease);
        this.#endSection(this.lossError());
      };
      const signals = this.leases.map(({ signal }) => signal);
      if (signals.some(({ aborted }) => aborted)) onLoss();
      else if (!this.isUnlocked) {
        this.#onLoss = onLoss;
        for (const signal of signals) signal.addEventListener('abort', onLoss);
      }
    }
    return this.#lossSignal.signal;
  }

  get asked(): AbortSignal {
    // Not `AbortSignal.any`: Node keeps a part of each result for as long as the signal of the lease around this one lives.
    if (this.#asked === undefined) {
      const lossSignal = new LossSignal();
      this.#asked = { signal: lossSignal.signal, interrupt: (reason) => lossSignal.abort(reason) };
      for (const { asked } of this.leases) {
        if (asked.aborted) lossSignal.abort(asked.reason);
        else if (!this.isUnlocked) listen(asked, this.#asked);
      }
    }
    return this.#asked.signal;
  }

  get remaining(): number {
    return this.isUnlocked ? 0 : Math.min(...this.leases.map((lease) => lease.remaining));
  }

  get fencingTokens(): ReadonlyMap<string, number> {
    const tokens = new Map<string, number>();
    for (const { key, fencingToken } of this.leases) if (fencingToken !== undefined) tokens.set(key, fencingToken);
    return tokens;
  }

  get isUnlocked(): boolean {
    return this.#unlocking !== undefined;
  }

  checkLost(): boolean {
    return this.leases.some((lease) => lease.checkLost());
  }

  lossError(result?: unknown, options?: ErrorOptions): LockLostError {
    const lost = this.leases.find((lease) => lease.checkLost()) ?? (this.leases[0] as InternalLease);
    return lost.lossError(result, options);
  }

  assertHeld(): void {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    for (const lease of this.leases) lease.assertHeld();
  }

  async renew(ttl?: number, timeout?: number): Promise<void> {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    // Without an await between them, so that the renewals go to Redis together. The first that fails ends it: the others
    // may go on for as long as their locks are held, and this lease is over with the first of its locks.
    const renewing = Promise.all(this.leases.map((lease) => lease.renew(ttl, timeout)));
    // A listener to the loss of one part may have unlocked the others, which say that only.
    await renewing.catch((error: unknown) => {
      throw this.checkLost() ? this.lossError() : error;
    });
  }

  holdAtLeast(ms: number): void {
    for (const lease of this.leases) lease.holdAtLeast(ms);
  }

  async eval(): Promise<never> {
    const why = 'a script is checked against one lock: take a lease with `obtain(key).lock()` for it';
    throw new TypeError(`The lease of ${this.leases.length} keys cannot run a script: ${why}`);
  }

  async detach(): Promise<never> {
    throw doesNotTravel(`${this.leases.length} keys`, 'take and detach one for each key');
  }

  unlock(): Promise<void> {
    return this.#unlockEach((lease) => lease.unlock());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#unlockEach((lease) => lease[Symbol.asyncDispose]());
  }

  /** The first call reports how it ended. A second call only waits for it. */
  #unlockEach(unlock: (lease: InternalLease) => PromiseLike<void>): Promise<void> {
    // A listener to a loss that is found now may unlock it too.
    const loss = this.checkLost() ? this.lossError() : undefined;
    if (this.#unlocking !== undefined) return this.#unlocking.catch(() => undefined);
    this.#endSection(loss);
    // A release may find that its lock was lost: that part is listened to until then.
    const release = async (lease: InternalLease): Promise<void> => {
      try {
        await unlock(lease);
      } finally {
        this.#unlisten(lease);
      }
    };
    // A subscriber that heard of the end may have unlocked it.
    this.#unlocking ??= settled(this.leases.map(release));
    return this.#unlocking;
  }

  #endSection(loss?: LockLostError): void {
    const { publishEnd } = this;
    this.publishEnd = undefined;
    publishEnd?.(loss);
  }

  /** A part that was entered again has the signal of the lease around it, which outlives this one. */
  #unlisten(lease: InternalLease): void {
    if (this.#onLoss !== undefined) lease.signal.removeEventListener('abort', this.#onLoss);
    if (this.#asked !== undefined) unlisten(lease.asked, this.#asked);
  }

  /** What `console.log(lease)` prints: no internals. */
  [inspect.custom](): string {
    return leaseText('MultiLease', this);
  }
}

/** Waits for all of them, and throws the first error. */
async function settled(promises: readonly PromiseLike<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
