/** Minimal FIFO queues for the callers of one process, one queue for each key. */
export class LocalQueues<Value> {
  readonly #waiters = new Map<string, ((value: Value | undefined) => void)[]>();

  /** Resolves at once with undefined, or after `leave` of the caller before, with the value that it hands over. */
  async enter(key: string): Promise<Value | undefined> {
    const waiters = this.#waiters.get(key);
    if (waiters === undefined) {
      this.#waiters.set(key, []);
      return undefined;
    }
    return new Promise((resolve) => waiters.push(resolve));
  }

  hasWaiters(key: string): boolean {
    return (this.#waiters.get(key)?.length ?? 0) > 0;
  }

  leave(key: string, value?: Value): void {
    const next = this.#waiters.get(key)?.shift();
    if (next === undefined) this.#waiters.delete(key);
    else next(value);
  }
}
