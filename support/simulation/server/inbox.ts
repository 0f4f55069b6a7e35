import type { Timeline } from '../timeline';

/** What has arrived at the server: executed at once, unless the server stands still; then in the order of arrival. */
export class Inbox {
  readonly #timeline: Timeline;
  readonly #waiting: (() => void)[] = [];
  #frozenUntil = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  get isFrozen(): boolean {
    return this.#timeline.now < this.#frozenUntil;
  }

  /** The server executes nothing for this many ms, though its connections stay open. */
  freeze(ms: number): void {
    this.#frozenUntil = Math.max(this.#frozenUntil, this.#timeline.now + ms);
    this.#timeline.at(this.#frozenUntil, () => this.#thaw());
  }

  /** What has arrived for the other one is executed here. The other one is not frozen any more. */
  take(other: Inbox): void {
    this.#waiting.push(...other.#waiting.splice(0));
    other.#frozenUntil = Number.NEGATIVE_INFINITY;
  }

  arrived(execute: () => void): void {
    if (this.isFrozen) this.#waiting.push(execute);
    else execute();
  }

  #thaw(): void {
    if (this.isFrozen) return;
    for (const execute of this.#waiting.splice(0)) execute();
  }
}
