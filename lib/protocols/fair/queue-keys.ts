import type { LockNames } from '../../redis/names';

/** KEYS of the scripts of the fair lock: see fair-scripts.ts. Those of the last command are kept for a busy lock. */
export class QueueKeys {
  readonly #fence: ((names: LockNames) => string) | undefined;
  #names: LockNames | undefined;
  #keys: string[] = [];

  /** `fence`: the name of the counter of tokens; `undefined`: without fencing. */
  constructor(fence: ((names: LockNames) => string) | undefined) {
    this.#fence = fence;
  }

  of(names: LockNames): string[] {
    if (this.#names !== names) {
      this.#names = names;
      this.#keys = [names.lock, names.companion('queue'), names.companion('tickets')];
      if (this.#fence !== undefined) this.#keys.push(this.#fence(names));
    }
    return this.#keys;
  }
}
