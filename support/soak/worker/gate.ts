/** Lets callers work, or keeps them from new calls while the soak checks what they left. */
export class Gate {
  #state: 'open' | 'shut' | 'finished' = 'shut';
  #inside = 0;
  readonly #changed = new Set<() => void>();

  open(): void {
    this.#change('open');
  }

  /** Resolves when all callers have ended the call that they were in. */
  async shut(): Promise<void> {
    this.#change('shut');
    while (this.#inside > 0) await this.#nextChange();
  }

  finish(): void {
    this.#change('finished');
  }

  /** Waits until calls are allowed; false: there are to be no more. */
  async enter(): Promise<boolean> {
    while (this.#state === 'shut') await this.#nextChange();
    if (this.#state === 'finished') return false;
    this.#inside++;
    return true;
  }

  leave(): void {
    this.#inside--;
    this.#notify();
  }

  /** Resolves after `ms`, or as soon as the gate is shut or a signal aborts. */
  async hold(ms: number, signals: readonly AbortSignal[]): Promise<void> {
    const signal = AbortSignal.any([...signals]);
    if (this.#state !== 'open' || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        if (this.#state === 'open' && performance.now() < endsAt && !signal.aborted) return;
        clearTimeout(timer);
        this.#changed.delete(end);
        resolve();
      };
      const endsAt = performance.now() + ms;
      const timer = setTimeout(() => {
        this.#changed.delete(end);
        resolve();
      }, ms);
      this.#changed.add(end);
      signal.addEventListener('abort', end);
    });
  }

  #change(state: 'open' | 'shut' | 'finished'): void {
    this.#state = state;
    this.#notify();
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      const once = () => {
        this.#changed.delete(once);
        resolve();
      };
      this.#changed.add(once);
    });
  }

  #notify(): void {
    for (const listener of [...this.#changed]) listener();
  }
}
