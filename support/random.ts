/** A source of numbers that a seed decides: sfc32, seeded by a hash of the seed and the stream's name. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream = '') {
    let hash = 2166136261 ^ seed;
    for (const char of `${seed}/${stream}`) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619);
    this.#a = hash | 0;
    this.#b = Math.imul(hash, 0x9e3779b1) | 0;
    this.#c = seed | 0;
    for (let i = 0; i < 12; i++) this.unit();
  }

  /** From 0 up to below 1. */
  unit(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.unit();
  }

  /** Whole, both ends included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.unit() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.unit() * choices.length)] as T;
  }

  /** One of the names, as often as their weights say. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T {
    const entries = Object.entries<number>(weights) as [T, number][];
    let at = this.unit() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      at -= weight;
      if (at < 0) return name;
    }
    return (entries[0] as [T, number])[0];
  }

  shuffled<T>(values: readonly T[]): T[] {
    const rest = [...values];
    return values.map(() => rest.splice(this.whole(0, rest.length - 1), 1)[0] as T);
  }

  /** An independent sequence, for a part of the run that must not depend on the timing of the others. */
  fork(): Random {
    return new Random(this.whole(0, 2 ** 31 - 1));
  }
}

/** In place of `Math.random`. */
export function seeded(seed: number): () => number {
  const random = new Random(seed);
  return () => random.unit();
}
