import type { Random } from '../random';

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
