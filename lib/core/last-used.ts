/** How many locks are those that were used last. */
const MOST_LAST_USED = 128;

/** What a lock has while it is in use: its callers in this process. */
interface Used {
  /** Kept by `LastUsed`; `undefined`: it is none of them. */
  placeByUse: number | undefined;
  /** Others were used since. */
  drop(): void;
}

/**
 * The locks that were used last stay as they are: so a lock in constant use does not make anew for each call what its callers
 * need. There may be many others: they have only what they must have.
 */
export class LastUsed {
  readonly #places: (Used | undefined)[] = [];
  #nextPlace = 0;

  /** It was used, and stays as it is until as many others were used. */
  add(used: Used): void {
    const oldest = this.#places[this.#nextPlace];
    this.#places[this.#nextPlace] = used;
    used.placeByUse = this.#nextPlace;
    this.#nextPlace = (this.#nextPlace + 1) % MOST_LAST_USED;
    if (oldest === undefined) return;
    oldest.placeByUse = undefined;
    oldest.drop();
  }

  remove(used: Used): void {
    if (used.placeByUse === undefined) return;
    this.#places[used.placeByUse] = undefined;
    used.placeByUse = undefined;
  }
}
