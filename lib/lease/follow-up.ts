import type { Acquisition } from '../acquire/acquisition';
import { Backoff } from '../internal/backoff';
import { backgroundPause, clock } from '../internal/clock';
import type { LockProtocol } from '../protocols/protocol';
import type { Connection } from '../redis/connection';
import { isClientClosed } from '../redis/failure';
import { release } from './release';

/** ms in which a healthy Redis has answered what was still in flight. */
const GRACE = 50;

/** ms; the longest pause between two tries to remove an orphan. */
const LONGEST_PAUSE = 1_000;

type RemovalResult = 'gone' | 'removed for now' | 'not removed';

/** Removes what one acquisition has in Redis, again and again, while one of its attempts may still be executed. */
export class FollowUp {
  readonly #acquisition: Acquisition;
  readonly #protocol: LockProtocol;
  readonly #connection: Connection;
  readonly #commandTimeout: number;
  /** Those that want to know of a removal that begins from now on. */
  #requests: (() => void)[] = [];
  #endPause: (() => void) | undefined;
  #isOver = false;

  constructor(acquisition: Acquisition, protocol: LockProtocol, connection: Connection, commandTimeout: number) {
    this.#acquisition = acquisition;
    this.#protocol = protocol;
    this.#connection = connection;
    this.#commandTimeout = commandTimeout;
  }

  /** Resolves when nothing of the acquisition can come to Redis any more, as far as is known. */
  async run(): Promise<void> {
    try {
      await this.#removeUntilOver();
    } finally {
      this.#isOver = true;
      resolveAll(this.#requests);
    }
  }

  /**
   * Asks for a removal now. Resolves when a removal has succeeded that was sent after every attempt had ended, or when
   * the follow-up is over. An earlier removal is not enough: an attempt may write after it, and the client is closed
   * next.
   */
  removeNow(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isOver) resolve();
      this.#requests.push(resolve);
      this.#endPause?.();
    });
  }

  async #removeUntilOver(): Promise<void> {
    const acquisition = this.#acquisition;
    // Keys written before now have expired by then.
    const endsAt = clock.now() + this.#protocol.orphanLife(acquisition);
    const backoff = new Backoff(GRACE, LONGEST_PAUSE);
    await Promise.race([acquisition.settled, backgroundPause(GRACE)]);
    for (;;) {
      const requests = this.#requests.splice(0);
      const result = await this.#remove();
      if (result === 'removed for now' && acquisition.inDoubt === 0) resolveAll(requests);
      else this.#requests.unshift(...requests);
      if (result === 'gone') return;
      await this.#pause(Math.min(backoff.next(), acquisition.ttl / 4), result);
      // A key expires by itself. A queue position may not: it is removed when Redis can be reached again.
      const mayStay = acquisition.isEnqueued && result === 'not removed';
      if (clock.now() >= endsAt && !mayStay) break;
    }
    // An attempt in the queue of a client that is cut off may be executed much later, when it has reconnected.
    await acquisition.settled;
    await this.#remove();
  }

  /** Ends early when an attempt has ended, or when a removal is asked for that can be made now. */
  async #pause(ms: number, result: RemovalResult): Promise<void> {
    const { inDoubt, settled } = this.#acquisition;
    if (inDoubt === 0 && result === 'removed for now' && this.#requests.length > 0) return;
    const early = new Promise<void>((resolve) => (this.#endPause = resolve));
    await Promise.race([backgroundPause(ms), early, ...(inDoubt > 0 ? [settled] : [])]);
    this.#endPause = undefined;
  }

  /** `gone` is final: no attempt can be executed later, since all were answered or came over this connection. */
  async #remove(): Promise<RemovalResult> {
    const { epoch, ticket, inDoubt } = this.#acquisition;
    try {
      await release(this.#protocol, ticket, this.#acquisition, this.#commandTimeout);
    } catch (error) {
      // A refusal, such as NOPERM or NOAUTH, may end before the orphan expires.
      return isClientClosed(error) ? 'gone' : 'not removed';
    }
    // node-redis sends what waited for a reconnect together with its handshake, and counts the connection a moment
    // later.
    await clock.immediate();
    const isOrdered = epoch !== undefined && epoch === this.#connection.connectionEpoch;
    return inDoubt === 0 && (!this.#acquisition.lostTrack || isOrdered) ? 'gone' : 'removed for now';
  }
}

function resolveAll(requests: readonly (() => void)[]): void {
  for (const resolve of requests) resolve();
}
