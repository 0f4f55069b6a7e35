import type { Connection } from '../redis/connection';
import type { InMemoryLocks } from './in-memory-locks';

/** The way of one registry to locks in memory. Nothing is lost on it, and nothing comes in another order. */
export class InMemoryConnection implements Connection {
  readonly connectionEpoch = 0;
  readonly disruptions = 0;
  readonly isClosed = false;
  readonly lastError = undefined;
  readonly locks: InMemoryLocks;
  isCutOff = false;

  constructor(locks: InMemoryLocks) {
    this.locks = locks;
  }

  slotOf(): undefined {}

  mayBeOutdated(): boolean {
    return false;
  }

  /** As `InMemoryLocks.send`. */
  send<T>(execute: () => T, timeout: number): Promise<T> {
    return this.locks.send(execute, timeout, this);
  }

  /** From now on nothing waits for an answer: it is there at once, or the request fails. */
  cutOff(): void {
    this.isCutOff = true;
    this.locks.cutOff(this);
  }
}
