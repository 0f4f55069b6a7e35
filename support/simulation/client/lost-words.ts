import type { Random } from '../../random';

/** Words of inboxes that are said again where they are not heard: see `lib/core/inbox.ts`. */
const SAID_AGAIN = /^(taken|ended) /;

/**
 * Loses some messages of inboxes, when they are said first. Nothing is wrong besides: connections stay, and the server counts
 * who listens. So what makes up for it is the reminder alone.
 */
export class LostWords {
  readonly #share: number;
  readonly #random: Random;
  readonly #said = new Set<string>();

  /** `share`: how many, from 0 to 1. */
  constructor(share: number, random: Random) {
    this.#share = share;
    this.#random = random;
  }

  loses(message: string): boolean {
    if (this.#share === 0 || this.#said.has(message) || !SAID_AGAIN.test(message)) return false;
    this.#said.add(message);
    return this.#random.chance(this.#share);
  }
}
