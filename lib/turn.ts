import type { Claim, Grant } from './strategies/strategy';

/** The right to contend for one lock in Redis, of which there is one in a process. */
export interface Turn {
  /** Lets the next local caller have it. A second call does nothing. */
  release(): void;
}

/** Where every caller queues in Redis for itself: nobody waits for a local turn. */
export class NoTurn implements Turn {
  release(): void {}
}

/** A turn with which the lock itself came, from the caller before. */
export class InheritedTurn implements Turn {
  readonly claim: Claim;
  readonly grant: Grant;
  readonly #turn: Turn;

  constructor(turn: Turn, claim: Claim, grant: Grant) {
    this.#turn = turn;
    this.claim = claim;
    this.grant = grant;
  }

  release(): void {
    this.#turn.release();
  }
}
