import type { Grant, Refusal } from '../protocols/protocol';
import type { Acquisition } from './acquisition';

/**
 * An acquisition that the previous local holder made for the next caller, and its answer: the lock, or a position in
 * its queue.
 */
interface Inherited {
  readonly acquisition: Acquisition;
  readonly answer: Grant | Refusal;
}

/** The right to contend for one lock in Redis. One caller of a process has it at a time. */
export interface Turn {
  /** Set by the holder that hands the lock over; taken by the caller that gets the turn. */
  inherited: Inherited | undefined;
  /** Its caller may queue in Redis. */
  readonly mayQueue: boolean;
  /** Gives the turn to the next local caller. A second call does nothing. */
  release(): void;
}

/**
 * A turn that nobody has to give back. For callers that queue where the lock is (`queue: 'redis'`), and for the single
 * attempt of a shared lock. It also ends the waits of a scope that is over.
 */
export class NoTurn implements Turn {
  inherited: undefined;
  readonly mayQueue: boolean;

  constructor(mayQueue = true) {
    this.mayQueue = mayQueue;
  }

  release(): void {}
}
