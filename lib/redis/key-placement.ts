import { hashTag } from './names';

/**
 * When this many hash tags, or keys without one, were found beside another one, it counts as proven that all keys are
 * on one server. This assumes a proxy that spreads keys evenly: over two servers, chance finds all of them once in a
 * million.
 */
const PROOF = 20;

/**
 * What is known about where the keys of a client are. A command about keys of several locks needs all of them on one
 * server. A cluster refuses other commands (CROSSSLOT). A proxy that shards keys may route by the first key without an
 * error.
 *
 * So releases and renewals of locks that were acquired alone go together first. If each finds its key, the keys were on
 * one server. A key that is not found together, but is found alone, shows that they are not.
 */
export class KeyPlacement {
  #state: 'assumed together' | 'proven together' | 'by slot' | 'apart' = 'assumed together';
  readonly #seenTogether = new Set<string>();

  /** It is proven that any keys may go into one command. */
  get isProven(): boolean {
    return this.#state === 'proven together';
  }

  /** What is found together may prove it. */
  get isOpen(): boolean {
    return this.#state === 'assumed together';
  }

  /** Keys with the same group may go into one command, as far as is known; `undefined`: this key goes alone. */
  groupOf(key: string): string | undefined {
    if (this.#state === 'apart') return undefined;
    return this.#state === 'by slot' ? (hashTag(key) ?? key) : '';
  }

  /** The server refused keys of several slots in one command. */
  crossSlot(): void {
    this.#state = 'by slot';
  }

  /** A key that a command about several keys did not find was found alone. */
  foundApart(): void {
    this.#state = 'apart';
  }

  /** A command found all of these keys. The first one decided on the server: that it was found proves nothing. */
  foundTogether(keys: readonly string[]): void {
    if (this.#state !== 'assumed together') return;
    const slots = keys.map((key) => hashTag(key) ?? key);
    for (const slot of slots) if (slot !== slots[0]) this.#seenTogether.add(slot);
    if (this.#seenTogether.size < PROOF) return;
    this.#state = 'proven together';
    this.#seenTogether.clear();
  }

  /** Asking alone for a missing key failed, so it may be elsewhere: what was seen so far proves nothing. */
  doubt(): void {
    this.#seenTogether.clear();
  }
}
