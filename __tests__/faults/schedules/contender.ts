import type { RedisLockRegistry } from '../../../lib';
import type { RedisLease } from '../../../lib/core/lease';

/** The beginning or the end of a lease. Times are in ms on the monotonic clock of the machine. */
export type LeaseEvent =
  | { readonly type: 'began'; readonly id: string; readonly token: number; readonly at: number }
  | { readonly type: 'ended'; readonly id: string; readonly at: number };

export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The outcome of a call: what it returned, or the name of its error. */
export type Outcome = 'granted' | 'held' | 'done' | 'nothing to do' | string;

/** Acquires and releases a lock, one lease at a time, and reports the beginning and end of each lease. */
export class Contender {
  readonly #registry: RedisLockRegistry;
  readonly #name: string;
  readonly #report: (event: LeaseEvent) => void;
  #count = 0;
  #stop: AbortController | undefined;
  #lease: { readonly lease: RedisLease; readonly end: () => void } | undefined;

  constructor(name: string, registry: RedisLockRegistry, report: (event: LeaseEvent) => void) {
    this.#name = name;
    this.#registry = registry;
    this.#report = report;
  }

  async lock(key: string, waitTime: number): Promise<Outcome> {
    const stop = new AbortController();
    this.#stop = stop;
    return this.#acquire(() => this.#registry.obtain(key).lock({ waitTime, signal: stop.signal }));
  }

  async tryLock(key: string): Promise<Outcome> {
    return this.#acquire(() => this.#registry.obtain(key).tryLock());
  }

  async abort(): Promise<Outcome> {
    this.#stop?.abort(new DOMException('aborted', 'AbortError'));
    return 'done';
  }

  async renew(): Promise<Outcome> {
    return this.#lease === undefined ? 'nothing to do' : outcomeOf(this.#lease.lease.renew());
  }

  async unlock(): Promise<Outcome> {
    if (this.#lease === undefined) return 'nothing to do';
    const { lease, end } = this.#lease;
    this.#lease = undefined;
    end();
    return outcomeOf(lease.unlock());
  }

  async #acquire(acquire: () => Promise<unknown>): Promise<Outcome> {
    try {
      const lease = (await acquire()) as RedisLease | null;
      if (lease === null) return 'held';
      this.#begin(lease);
      return 'granted';
    } catch (error) {
      return (error as Error).name;
    }
  }

  #begin(lease: RedisLease): void {
    const id = `${this.#name}-${++this.#count}`;
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      // The signal may be late; the lease has ended at its deadline.
      this.#report({ type: 'ended', id, at: sharedNow() + Math.min(0, lease.hold.until - performance.now()) });
    };
    this.#lease = { lease, end };
    this.#report({ type: 'began', id, token: lease.fencingToken as number, at: sharedNow() });
    lease.signal.addEventListener('abort', end);
  }
}

async function outcomeOf(promise: Promise<void>): Promise<Outcome> {
  try {
    await promise;
    return 'done';
  } catch (error) {
    return (error as Error).name;
  }
}
