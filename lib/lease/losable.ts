import type { LockLostReason } from '../distributed-lock';
import { LockLostError } from '../errors';
import { LossSignal } from './loss-signal';

/** How the loss of a lease is reported: by an error, and by a signal. */
export abstract class Losable {
  abstract readonly key: string;
  /** `undefined`: it has not been lost. */
  protected loss: LockLostReason | undefined;
  #lossSignal: LossSignal | undefined;

  // Made when it is first read: most leases are unlocked before anybody reads it.
  get signal(): AbortSignal {
    if (this.#lossSignal === undefined) {
      this.#lossSignal = new LossSignal();
      if (this.loss !== undefined) this.signalLoss();
    }
    return this.#lossSignal.signal;
  }

  /** A fresh error that says how the lease was lost. */
  lossError(result?: unknown): LockLostError {
    return new LockLostError(this.key, this.loss ?? 'unconfirmed', result);
  }

  protected signalLoss(): void {
    this.#lossSignal?.abort(this.lossError());
  }
}
