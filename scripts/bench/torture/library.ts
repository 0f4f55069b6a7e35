/** What a library gives to a caller that got the lock. */
export interface Held {
  /** ms for which the library says that it may be relied on; `undefined`: it says yes and names no end; 0: it says no. */
  remaining(): number | undefined | Promise<number | undefined>;
  /** Whether the library has said by itself, by a signal or an event, that the lock is lost. Without it, it says nothing. */
  isTold?(): boolean;
  release(): Promise<unknown>;
}

/** A lock library, as its own pages advise to use it. */
export interface Library {
  /** `null`: it was not free within the wait. Rejects when Redis failed. */
  lock(key: string): Promise<Held | null>;
}

/** ms; the same for all. Where a library renews, it renews leases of this length. */
export const TTL = 2_000;
/** ms for which a call waits. */
export const WAIT = 3_000;

/** Makes a lease of what runs a task under the lock and gives it a signal. */
export function heldWhile(use: (task: (signal: AbortSignal) => Promise<void>) => Promise<unknown>): Promise<Held> {
  return new Promise((resolve, reject) => {
    const task = (signal: AbortSignal) =>
      new Promise<void>((end) => {
        const release = () => {
          end();
          return running;
        };
        const isTold = () => signal.aborted;
        resolve({ remaining: () => (isTold() ? 0 : undefined), isTold, release });
      });
    const running = use(task);
    running.catch(reject);
  });
}
