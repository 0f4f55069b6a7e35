import { backgroundPause, clock, inBackground } from '../internal/clock';
import { Backoff, SharedTimer } from '../internal/timers';
import type { Connection } from '../redis/connection';
import { answerOf, isClientClosed } from '../redis/failure';
import type { Hold } from './hold';

/** ms in which a healthy Redis has answered what was still in flight. */
const GRACE = 50;

/** ms; the longest pause between two tries to remove an orphan. */
const LONGEST_PAUSE = 1_000;

/**
 * ms; the pauses after removals that were answered while an attempt may still be executed: its connection was lost, and
 * something between here and the server may have kept it.
 */
const AGAIN_AFTER = [1_000, 10_000];

type RemovalResult = 'gone' | 'removed for now' | 'not removed' | 'client is closed';

/**
 * Removes orphans: keys and queue positions in Redis that nobody tracks. An attempt leaves an orphan when its caller
 * gives up before the reply, or when the reply is lost. So does a lease that is lost, or whose release is not
 * confirmed.
 */
export class Orphans {
  readonly connection: Connection;
  readonly commandTimeout: number;
  /** One for all: their removals go to Redis together. */
  readonly timer = new SharedTimer(false);
  readonly #followUps = new Set<FollowUp>();

  constructor(connection: Connection, commandTimeout: number) {
    this.connection = connection;
    this.commandTimeout = commandTimeout;
  }

  /** Removes in the background what the hold has in Redis, while one of its attempts may still be executed. */
  follow(hold: Hold): void {
    if (!hold.giveUp()) return;
    const followUp = new FollowUp(hold, this);
    this.#followUps.add(followUp);
    inBackground(() => void followUp.run().finally(() => this.#followUps.delete(followUp)));
  }

  /**
   * Runs one more removal for every acquisition that is followed up. Resolves when they are done, after at most
   * `timeout` ms.
   */
  async removeNow(timeout: number): Promise<void> {
    if (this.#followUps.size === 0) return;
    const removed = [...this.#followUps].map((followUp) => followUp.removeNow());
    await Promise.race([Promise.all(removed), backgroundPause(timeout)]);
  }
}

/** Removes what one hold has in Redis, and a few times more while one of its attempts may still be executed. */
class FollowUp {
  readonly #hold: Hold;
  readonly #orphans: Orphans;
  /** Those that want to know of a removal that begins from now on. */
  #requests: (() => void)[] = [];
  #endPause: (() => void) | undefined;
  #isOver = false;

  constructor(hold: Hold, orphans: Orphans) {
    this.#hold = hold;
    this.#orphans = orphans;
  }

  /** Resolves when nothing of the hold can come to Redis any more, as far as is known. */
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
    const hold = this.#hold;
    const { connection } = this.#orphans;
    const life = hold.protocol.orphanLife(hold);
    // Keys written before now have expired by then.
    const endsAt = clock.now() + life;
    const backoff = new Backoff(GRACE, LONGEST_PAUSE);
    const again = AGAIN_AFTER.map((ms) => Math.min(ms, life));
    let result: RemovalResult | undefined;
    if (hold.inDoubt > 0) await this.#pause(GRACE);
    do {
      if (hold.inDoubt === 0 && !hold.reachedRedis) return;
      const requests = this.#requests.splice(0);
      const { inDoubt } = hold;
      if (result !== 'client is closed' || !connection.isClientClosed) result = await this.#remove();
      const isClosed = result === 'client is closed';
      // A closed client sends nothing for those either that asked meanwhile.
      if (isClosed) requests.push(...this.#requests.splice(0));
      if (isClosed || (result === 'removed for now' && inDoubt === 0)) resolveAll(requests);
      else this.#requests.unshift(...requests);
      if (result === 'gone') return;
      const isRemoved = result === 'removed for now';
      let ms = isRemoved ? again.shift() : Math.min(backoff.next(), hold.ttl / 4);
      // A key expires by itself. A queue position may not: it is removed when Redis can be reached again. A client that
      // was closed for so long may never be connected again.
      if (clock.now() >= endsAt && (isRemoved || isClosed || !hold.isEnqueued)) ms = undefined;
      if (isRemoved && hold.inDoubt === 0 && this.#requests.length > 0) continue;
      // An attempt that was in doubt may have been executed after the removal.
      if (ms === undefined && hold.inDoubt === 0 && inDoubt > 0) continue;
      if (ms === undefined && hold.inDoubt === 0) return;
      // An attempt in the queue of a client that is cut off may be executed much later, when it has reconnected.
      await this.#pause(ms);
    } while (!connection.isClosed);
  }

  /**
   * Ends early when the attempts have ended, or when a removal is asked for. `ms`: `undefined` is without end.
   */
  async #pause(ms = Number.POSITIVE_INFINITY): Promise<void> {
    const { inDoubt, settled } = this.#hold;
    let resume = (): void => undefined;
    const over = new Promise<void>((resolve) => (resume = resolve));
    this.#endPause = resume;
    this.#orphans.timer.schedule(resume, clock.now() + ms);
    await (inDoubt > 0 ? Promise.race([over, settled]) : over);
    this.#orphans.timer.cancel(resume);
    this.#endPause = undefined;
  }

  /** `gone` is final: no attempt can be executed later, since all were answered or came over this connection. */
  async #remove(): Promise<RemovalResult> {
    const hold = this.#hold;
    const { inDoubt } = hold;
    try {
      // While it is unanswered, it may be on its way, and a second one would only wait behind it.
      for (const owner of hold.owners) {
        await answerOf(hold.release(this.#orphans.commandTimeout, undefined, owner));
      }
    } catch (error) {
      // A refusal, such as NOPERM or NOAUTH, may end before the orphan expires.
      return isClientClosed(error) ? 'client is closed' : 'not removed';
    }
    // node-redis sends what waited for a reconnect together with its handshake, and counts the connection a moment
    // later.
    await clock.immediate();
    return inDoubt === 0 && (!hold.lostTrack || hold.isInOrder) ? 'gone' : 'removed for now';
  }
}

function resolveAll(requests: readonly (() => void)[]): void {
  for (const resolve of requests) resolve();
}
