import type { Signs } from './signs';

/**
 * ms. A pause outlasts the interval of most pollers, so that a waiting poller makes an attempt in the first pause.
 * Redisson's spin lock sleeps for up to 128 ms between two attempts, Spring's for 100 ms by default. A round trip and
 * the delay of a busy machine are added to both.
 */
export const SHORTEST_PAUSE = 145;
export const LONGEST_PAUSE = 500;

/** ms from the start of one pause to that of the next, while no poller is known. So pauses take 2.9 % of the time. */
const WHILE_UNKNOWN = 5_000;
/** The same for a long pause, as a multiple of it. */
const SELDOM = Math.ceil(WHILE_UNKNOWN / SHORTEST_PAUSE);
/** ms to the next pause, after one in which the lock was taken. Each unused pause doubles this. */
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
