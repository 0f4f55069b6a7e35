import { hashTag } from './names';

/** This many hash slots, each found beside another one, prove that all keys are on one server. */
const PROOF = 20;

/**
 * What is known about where the keys of a client are. A command about keys of several locks needs all of them on one
 * server. A cluster says so (CROSSSLOT). A proxy that shards keys may look at the first key only, and say nothing.
 *
 * So commands that give back what was taken alone go together first. As long as each finds its key, they were on one
 * server. A key that such a command does not find, and that is found alone, shows that they are not.
 */
export class KeyPlacement {
  #state: 'assumed together' | 'proven together' | 'by slot' | 'apart' = 'assumed together';
  readonly #seenTogether = new Set<string>();

  /** It is proven that any keys may go into one command. */
  get isProven(): boolean {
    return this.#state === 'proven together';
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

  /** What was seen so far proves nothing: it could not be found out whether a missing key is elsewhere. */
  doubt(): void {
    this.#seenTogether.clear();
  }
}
