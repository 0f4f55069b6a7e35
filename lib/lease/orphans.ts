import type { Acquisition } from '../acquire/acquisition';
import { inBackground } from '../internal/background';
import { Backoff } from '../internal/backoff';
import { backgroundPause, clock } from '../internal/clock';
import type { LockProtocol } from '../protocols/protocol';
import { isClientClosed } from '../redis/failure';
import type { Redis } from '../redis/redis';

/** ms in which a healthy Redis has answered what was still in flight. */
const GRACE = 50;

/** ms; the longest pause between two tries to remove an orphan. */
const LONGEST_PAUSE = 1_000;

/**
 * Removes orphans: keys and queue positions in Redis that nobody tracks. An attempt leaves one when its caller gives up
 * while the attempt is in flight or in the client's queue until a reconnect, or when its reply is lost. So does a lease
 * that is lost, or whose release is not confirmed.
 */
export class Orphans {
  readonly #redis: Redis;
  readonly #commandTimeout: number;
  /** For each acquisition that is followed up: when nothing of it is left, as far as that can be known now. */
  readonly #cleaning = new Set<Promise<void>>();

  constructor(redis: Redis, commandTimeout: number) {
    this.#redis = redis;
    this.#commandTimeout = commandTimeout;
  }

  /** Removes in the background what the acquisition has in Redis, while one of its attempts may still be executed. */
  follow(acquisition: Acquisition, protocol: LockProtocol): void {
    const cleaned = new Promise<void>((resolve) => {
      inBackground(() => void this.#follow(acquisition, protocol, resolve).finally(resolve));
    });
    this.#cleaning.add(cleaned);
    void cleaned.then(() => this.#cleaning.delete(cleaned));
  }

  /** Resolves when everything that is followed up was removed once, after at most `timeout` ms. */
  async settle(timeout: number): Promise<void> {
    if (this.#cleaning.size > 0) await Promise.race([Promise.all(this.#cleaning), backgroundPause(timeout)]);
  }

  /** Calls `cleaned` when all attempts were answered, or their connection is gone, and one removal came after them. */
  async #follow(acquisition: Acquisition, protocol: LockProtocol, cleaned: () => void): Promise<void> {
    // Keys written before now have expired by then.
    const endsAt = clock.now() + protocol.orphanLife(acquisition);
    const backoff = new Backoff(GRACE, LONGEST_PAUSE);
    await Promise.race([acquisition.settled, backgroundPause(GRACE)]);
    for (;;) {
      const result = await this.#remove(acquisition, protocol);
      if (result === 'gone') return;
      if (result === 'removed for now' && acquisition.inDoubt === 0) cleaned();
      await backgroundPause(Math.min(backoff.next(), acquisition.ttl / 4));
      // A key expires by itself. A queue position may not: it is removed when Redis can be reached again.
      const mayStay = acquisition.isEnqueued && result === 'not removed';
      if (clock.now() >= endsAt && !mayStay) break;
    }
    // An attempt in the queue of a client that is cut off may be executed much later, when it has reconnected.
    await acquisition.settled;
    await this.#remove(acquisition, protocol);
  }

  /** "Gone" is final: no attempt can be executed later, since all were answered or came over this connection. */
  async #remove(acquisition: Acquisition, protocol: LockProtocol): Promise<'gone' | 'removed for now' | 'not removed'> {
    const areAnswered = acquisition.inDoubt === 0;
    try {
      await protocol.release(acquisition.ticket, this.#commandTimeout);
    } catch (error) {
      // A refusal, such as NOPERM or NOAUTH, may end before the life of the orphan does.
      return isClientClosed(error) ? 'gone' : 'not removed';
    }
    // node-redis sends what waited for a reconnect together with its handshake, and counts the connection a moment later.
    await clock.immediate();
    const { epoch } = acquisition;
    const isOrdered = epoch !== undefined && epoch === this.#redis.connectionEpoch;
    return areAnswered && (!acquisition.lostTrack || isOrdered) ? 'gone' : 'removed for now';
  }
}
