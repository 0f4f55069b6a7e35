/** The callers of one process, in order: the least that a local queue can be. One for each key. */
export class Fifos<Handed> {
  readonly #waiters = new Map<string, ((handed: Handed | undefined) => void)[]>();

  /** Enters: at once with nothing, or later with what the one before handed on. */
  async enter(key: string): Promise<Handed | undefined> {
    const waiters = this.#waiters.get(key);
    if (waiters === undefined) {
      this.#waiters.set(key, []);
      return undefined;
    }
    return new Promise((resolve) => waiters.push(resolve));
  }

  isAwaited(key: string): boolean {
    return (this.#waiters.get(key)?.length ?? 0) > 0;
  }

  leave(key: string, handed?: Handed): void {
    const next = this.#waiters.get(key)?.shift();
    if (next === undefined) this.#waiters.delete(key);
    else next(handed);
  }
}
