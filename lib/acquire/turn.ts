import type { Grant } from '../protocols/protocol';
import type { Acquisition } from './acquisition';

/** A lock that the previous local holder handed over together with the turn. */
export interface HandedOver {
  readonly acquisition: Acquisition;
  readonly grant: Grant;
}

/** The right to contend for one lock in Redis. One caller of a process has it at a time. */
export interface Turn {
  /** Set by the holder that hands the lock over; taken by the caller that gets the turn. */
  handedOver: HandedOver | undefined;
  /** Its caller may queue in Redis. */
  readonly mayQueue: boolean;
  /** Gives the turn to the next local caller. A second call does nothing. */
  release(): void;
}

/** For callers that contend without the turn: those of `fair`, which queue in Redis, and waiters whose scope has ended. */
export class NoTurn implements Turn {
  handedOver: undefined;
  readonly mayQueue: boolean;

  constructor(mayQueue = true) {
    this.mayQueue = mayQueue;
  }

  release(): void {}
}
