import { backgroundPause, inBackground } from '../internal/clock';
import { SharedTimer } from '../internal/timers';
import type { Connection } from '../redis/connection';
import { FollowUp } from './follow-up';
import type { Hold } from './hold';

/**
 * Removes orphans: keys and queue positions in Redis that nobody tracks. An attempt leaves an orphan when its caller
 * gives up before the reply, or when the reply is lost. So does a lease that is lost, or whose release is not
 * confirmed.
 */
export class Orphans {
  readonly #connection: Connection;
  readonly #commandTimeout: number;
  readonly #followUps = new Map<Hold, FollowUp>();
  readonly #timer = new SharedTimer(false);

  constructor(connection: Connection, commandTimeout: number) {
    this.#connection = connection;
    this.#commandTimeout = commandTimeout;
  }

  /** Removes in the background what the hold has in Redis, while one of its attempts may still be executed. */
  follow(hold: Hold): void {
    // Readers that were in together lose one hold, and each of them gives it back.
    if (this.#followUps.has(hold)) return;
    const followUp = new FollowUp(hold, this.#connection, this.#commandTimeout, this.#timer);
    this.#followUps.set(hold, followUp);
    inBackground(() => void followUp.run().finally(() => this.#followUps.delete(hold)));
  }

  /**
   * Runs one more removal for every acquisition that is followed up. Resolves when they are done, after at most
   * `timeout` ms.
   */
  async removeNow(timeout: number): Promise<void> {
    if (this.#followUps.size === 0) return;
    const removed = [...this.#followUps.values()].map((followUp) => followUp.removeNow());
    await Promise.race([Promise.all(removed), backgroundPause(timeout)]);
  }
}
