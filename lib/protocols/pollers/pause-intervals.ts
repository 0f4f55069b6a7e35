import type { Signs } from './signs';

/**
 * ms. A pause is longer than a poller's interval, if that is below `LONGEST_PAUSE`, so that a poller that waits makes an
 * attempt within the first pause. Redisson's spin lock sleeps for up to 128 ms between two attempts, Spring's for 100 ms
 * by default. To both comes a round trip, and what a busy machine adds.
 */
export const SHORTEST_PAUSE = 145;
const LONGEST_PAUSE = 500;

/** ms from the begin of one pause to the next, while no poller is known. So pauses take 2.9 % of the time. */
const WHILE_UNKNOWN = 5_000;
/** The same for a long pause, as a multiple of it. */
const SELDOM = Math.ceil(WHILE_UNKNOWN / SHORTEST_PAUSE);
/** ms to the next pause, after one in which the lock was taken. Each unused pause doubles them. */
const AFTER_USE = 400;
/** ms from one pause to the next, at most, while a poller is known. */
const WHILE_KNOWN = 1_600;

/** How long a pause is, and how long it is from one to the next. */
export class PauseIntervals {
  /** ms that a pause lasts. */
  readonly pause: number;
  readonly #signs: Signs;
  readonly #whileUnknown: number;

  constructor(idleBetweenTries: number, signs: Signs) {
    this.#signs = signs;
    this.pause = Math.min(Math.max(1.1 * idleBetweenTries, SHORTEST_PAUSE), LONGEST_PAUSE);
    this.#whileUnknown = Math.max(WHILE_UNKNOWN, SELDOM * this.pause);
  }

  /** ms from one pause to the next. */
  next(now: number): number {
    const longest = this.#signs.isKnown(now) ? WHILE_KNOWN : this.#whileUnknown;
    return Math.min(AFTER_USE * 2 ** this.#signs.unusedPauses, longest);
  }
}
