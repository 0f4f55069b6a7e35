import { backgroundPause, clock, inBackground } from '../../internal/clock';
import { Backoff } from '../../internal/timers';
import { isFinal } from '../../redis/failure';

/** ms; a failover forgets only what was written within this time before a client learns of it. */
const REMEMBERED = 30_000;

/** ms for which a removal is tried after a reconnect. Another reconnect begins anew. */
const TRIED_FOR = 10_000;

/** Removes a position, and those that its process had before it in the same queue. */
type Remove = () => Promise<unknown>;

/**
 * Positions that were given up lately, in the queues of the locks of one registry. A server that takes over may not
 * know that they were given up, and a position does not expire: it would hold up all others. So they are removed once
 * more after each reconnect.
 */
export class PastPositions {
  /** For each lock: how to remove the last one, and when it was given up. In the order of time. */
  readonly #removals = new Map<object, { readonly remove: Remove; readonly at: number }>();
  #round = 0;
  #timer: NodeJS.Timeout | undefined;

  /** The last position in the queue of `lock` is being given up. */
  add(lock: object, remove: Remove): void {
    const now = clock.now();
    this.#removals.delete(lock);
    this.#removals.set(lock, { remove, at: now });
    if (this.#timer === undefined) this.#forgetIn(REMEMBERED);
  }

  /** An entry refers to all that is known of its lock, which may have been evicted. */
  #forgetIn(ms: number): void {
    this.#timer = clock.setTimeout(() => {
      this.#timer = undefined;
      const now = clock.now();
      for (const [oldest, { at }] of this.#removals) {
        if (now - at < REMEMBERED) return this.#forgetIn(at + REMEMBERED - now);
        this.#removals.delete(oldest);
      }
    }, ms);
    this.#timer.unref?.();
  }

  /** A connection was made again, perhaps to another server. */
  removeAgain(): void {
    const round = ++this.#round;
    const now = clock.now();
    const recent = [...this.#removals.values()].filter(({ at }) => now - at <= REMEMBERED);
    // Without an await between them, so that they go to Redis together.
    inBackground(() => {
      for (const { remove } of recent) void this.#repeat(remove, round, now + TRIED_FOR);
    });
  }

  close(): void {
    this.#round++;
    this.#removals.clear();
    clock.clearTimeout(this.#timer);
  }

  /** Until Redis has answered, or a later reconnect has begun another round. */
  async #repeat(remove: Remove, round: number, endsAt: number): Promise<void> {
    for (const backoff = new Backoff(); round === this.#round && clock.now() < endsAt; ) {
      try {
        await remove();
        return;
      } catch (error) {
        if (isFinal(error)) return;
        await backgroundPause(backoff.next());
      }
    }
  }
}
