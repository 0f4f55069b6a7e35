import type { LockNames } from '../../redis/names';

/** KEYS of the scripts of the fair lock: see fair-scripts.ts. Those of the last command are kept for a busy lock. */
export class QueueKeys {
  readonly #isFencing: boolean;
  #names: LockNames | undefined;
  #keys: string[] = [];

  constructor(isFencing: boolean) {
    this.#isFencing = isFencing;
  }

  of(names: LockNames): string[] {
    if (this.#names !== names) {
      this.#names = names;
      this.#keys = [names.lock, names.companion('queue'), names.companion('tickets')];
      if (this.#isFencing) this.#keys.push(names.companion('fence'));
    }
    return this.#keys;
  }
}
