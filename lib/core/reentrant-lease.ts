import { inspect } from 'node:util';
import type { LeaseEvalOptions } from '../api/distributed-lock';
import { type LockLostError, leaseUnlocked } from '../api/errors';
import { leaseText } from './lease-text';
import type { HeldLease } from './unlock-order';

/**
 * A re-entry inside a scope: the outer lease, and the scope's turn. Unlocking gives back the turn and sends no command.
 */
export class ReentrantLease implements HeldLease {
  readonly #outer: HeldLease;
  readonly #giveBack: () => void;
  isUnlocked = false;
  readonly isReentry = true;

  constructor(outer: HeldLease, giveBack: () => void) {
    this.#outer = outer;
    this.#giveBack = giveBack;
  }

  get key(): string {
    return this.#outer.key;
  }

  get owner(): string {
    return this.#outer.owner;
  }

  get signal(): AbortSignal {
    return this.#outer.signal;
  }

  get remaining(): number {
    return this.isUnlocked ? 0 : this.#outer.remaining;
  }

  get fencingToken(): number | undefined {
    return this.#outer.fencingToken;
  }

  checkLost(): boolean {
    return this.#outer.checkLost();
  }

  lossError(result?: unknown): LockLostError {
    return this.#outer.lossError(result);
  }

  holdAtLeast(ms: number): void {
    this.#outer.holdAtLeast(ms);
  }

  assertHeld(): void {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    this.#outer.assertHeld();
  }

  async renew(ttl?: number, timeout?: number): Promise<void> {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    await this.#outer.renew(ttl, timeout);
  }

  async eval(script: string, options?: LeaseEvalOptions): Promise<unknown> {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    return this.#outer.eval(script, options);
  }

  async unlock(): Promise<void> {
    if (this.isUnlocked) return;
    this.isUnlocked = true;
    this.#giveBack();
    if (this.#outer.checkLost()) throw this.#outer.lossError();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock().catch(() => undefined);
  }

  /** What `console.log(lease)` prints: no internals. */
  [inspect.custom](): string {
    return leaseText('Lease', this, ', reentrant: true');
  }
}
