/** How many locks are remembered: those that were held last. */
const REMEMBERED = 1_000;
/** The last holds of a lock count, once there are some. */
const COUNTED = 20;
const LEAST = 3;

/** How long each lock is held usually: the geometric mean of its last holds, in which one that was stuck counts little. */
export class HoldTimes {
  readonly #holds = new Map<string, { readonly count: number; readonly log: number }>();

  /** `heldFor` in ms. */
  add(lock: string, heldFor: number): void {
    const { count, log } = this.#holds.get(lock) ?? { count: 0, log: 0 };
    const next = Math.min(count + 1, COUNTED);
    this.#holds.delete(lock);
    this.#holds.set(lock, { count: next, log: log + (Math.log(heldFor + 1) - log) / next });
    if (this.#holds.size > REMEMBERED) this.#holds.delete(this.#holds.keys().next().value as string);
  }

  /** ms; `null`: too few holds were seen. */
  usual(lock: string): number | null {
    const { count, log } = this.#holds.get(lock) ?? { count: 0, log: 0 };
    return count < LEAST ? null : Math.round(Math.exp(log) - 1);
  }
}
