/** Repeatable choices: the same seed makes the same ones in the same order (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 up to below 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.between(0, values.length - 1)] as T;
  }

  shuffled<T>(values: readonly T[]): T[] {
    const rest = [...values];
    return values.map(() => rest.splice(this.between(0, rest.length - 1), 1)[0] as T);
  }

  /** An independent sequence, for a part of the run that must not depend on the timing of the others. */
  fork(): Random {
    return new Random(this.between(0, 2 ** 31 - 1));
  }
}

/** Draws each value once before any is drawn again. */
export class Bag<T> {
  readonly #values: readonly T[];
  readonly #random: Random;
  #left: T[];

  /** `first`: the index of the value that is drawn first, modulo their number. */
  constructor(values: readonly T[], random: Random, first: number) {
    this.#values = values;
    this.#random = random;
    const begin = values[first % values.length] as T;
    this.#left = [...random.shuffled(values.filter((value) => value !== begin)), begin];
  }

  draw(): T {
    if (this.#left.length === 0) this.#left = this.#random.shuffled(this.#values);
    return this.#left.pop() as T;
  }
}
