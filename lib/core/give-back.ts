import { clock, inBackground, pause } from '../internal/clock';
import { States } from '../internal/states';
import { BackgroundPauses, Backoff, TimerForMany } from '../internal/timers';
import type { Connection } from '../redis/connection';
import { answerOf, causeOf, isClientClosed, isErrorReply, isFinal, messageOf, reasonOf } from '../redis/failure';
import type { Hold } from './hold';
import type { Released } from './protocol';

/** ms in which a healthy Redis has answered what was still in flight. */
const GRACE = 50;

/** ms; the longest pause between two tries to remove what is left. */
const LONGEST_PAUSE = 1_000;

/**
 * ms; the pauses after removals that were answered while an attempt may still be executed: it is not answered, or its
 * connection was lost, and something between here and the server may have kept it.
 */
const AGAIN_AFTER = [1_000, 10_000];

/** What Redis first answered when a hold was given back. */
export type GivenBack =
  | {
      readonly outcome: Released;
      /** An earlier try may have released it: that it is gone proves no loss. */
      readonly isRepeated: boolean;
    }
  | { readonly outcome: 'failed'; readonly cause: unknown; readonly reason: string };

type RemovalResult = 'gone' | 'removed for now' | 'not removed' | 'refused' | 'client is closed';

/** Asks again after failures that pass, until `endsAt`. */
export async function repeated<T>(ask: () => Promise<T>, endsAt: () => number, rest = pause): Promise<T> {
  for (const backoff = new Backoff(); ; ) {
    try {
      return await ask();
    } catch (error) {
      const interval = backoff.next();
      if (isFinal(error) || clock.now() + interval >= endsAt()) throw error;
      await rest(interval);
    }
  }
}

/**
 * Gives back what holds have in Redis, or may have: keys and positions in queues. At first for a caller that waits for
 * the answer. What an attempt without an answer, a release without one, or a lost lease has left, is removed in the
 * background.
 */
export class GivingBack {
  readonly connection: Connection;
  readonly commandTimeout: number;
  /** One for all: their removals go to Redis together. */
  readonly timer = new TimerForMany(false);
  readonly #pauses = new BackgroundPauses();
  readonly #followUps = new Map<Hold, FollowUp>();

  constructor(connection: Connection, commandTimeout: number) {
    this.connection = connection;
    this.commandTimeout = commandTimeout;
  }

  /**
   * Releases the hold, within `limit` ms from `sentAt` on. Resolves to the first answer, and never rejects. What may be
   * left then is followed up. `first`: the first try, if it was sent already; `disruptions`: of the connection, before it.
   */
  async within(
    limit: number,
    hold: Hold,
    sentAt = clock.now(),
    first?: Promise<Released>,
    disruptions = this.connection.disruptions,
  ): Promise<GivenBack> {
    const endsAt = sentAt + limit;
    let next = first;
    const release = async (): Promise<Released> => {
      const asked = next ?? hold.release(Math.max(1, endsAt - clock.now()));
      next = undefined;
      try {
        return await asked;
      } catch (error) {
        hold.attempts.giveBackFailed(error);
        throw error;
      }
    };
    try {
      const outcome = await repeated(release, () => endsAt);
      if (!hold.isCertain) this.follow(hold);
      // A client that lost its connection may have sent a try twice.
      return { outcome, isRepeated: hold.attempts.mayBeGivenBack || this.connection.disruptions !== disruptions };
    } catch (error) {
      this.follow(hold);
      const cause = causeOf(error, this.connection);
      return { outcome: 'failed', cause, reason: describe(cause, clock.now() - sentAt) };
    }
  }

  /**
   * Removes in the background what the hold has in Redis, or may have: once at least, and again while one of its attempts may
   * still be executed.
   */
  follow(hold: Hold): void {
    if (!hold.giveUp()) return;
    const followUp = new FollowUp(hold, this);
    this.#followUps.set(hold, followUp);
    inBackground(() => void followUp.run(() => this.#followUps.delete(hold)));
  }

  /**
   * Removes once more what is followed up: of all holds, or of one. Resolves when that is done, after at most `timeout`
   * ms. `undefined`: there is nothing to remove.
   */
  removeNow(timeout: number, hold?: Hold): Promise<unknown> | undefined {
    const followUps = hold === undefined ? [...this.#followUps.values()] : [this.#followUps.get(hold)];
    const removed = followUps.flatMap((followUp) => (followUp === undefined ? [] : [followUp.removeNow()]));
    return removed.length > 0 ? this.#pauses.within(timeout, Promise.all(removed)) : undefined;
  }

  /** Nothing is removed any more, but for what an `unlock` after this leaves. Leaves no timer behind. */
  close(): void {
    this.#pauses.close();
    for (const followUp of this.#followUps.values()) followUp.endPause?.();
    this.timer.close();
  }
}

/** The life of a follow-up: its states, what ends each of them, and what may follow. */
const STATES = new States('follow-up', {
  /** A removal is in flight, or about to be sent. */
  removing: ['pausing', 'over'],
  /** Until all attempts have ended, a removal is asked for, or it is time for the next one. */
  pausing: ['removing'],
  /** Nothing of the hold can come to Redis any more, as far as is known; or the registry is closed. */
  over: [],
});
const { become } = STATES;

/** Removes what one hold has in Redis, and a few times more while one of its attempts may still be executed. */
class FollowUp {
  readonly #hold: Hold;
  readonly #givingBack: GivingBack;
  /** Callers of `removeNow` that want to know of a removal that begins from now on. */
  #requests: (() => void)[] = [];
  /** Ends the pause that it makes, if it makes one. */
  endPause: (() => void) | undefined;
  #state: keyof typeof STATES.following = 'removing';
  /** ms for which what an attempt has written may be there. */
  readonly #life: number;
  /** What was written before the follow-up began has expired by then, and what an attempt that was in doubt wrote. */
  #endsAt = 0;
  readonly #backoff: Backoff;
  /** The pauses that are left after removals that were answered. */
  #again: number[] = [];

  constructor(hold: Hold, givingBack: GivingBack) {
    this.#hold = hold;
    this.#givingBack = givingBack;
    this.#life = hold.protocol.orphanLife(hold);
    this.#backoff = new Backoff(Math.min(GRACE, hold.ttl / 4), LONGEST_PAUSE);
    this.#begin();
    // What was in doubt was executed just now, where a server stood still. Or its connection was lost just now, and a copy
    // may still be on its way.
    void hold.attempts.settled?.then(() => this.#begin());
  }

  #begin(): void {
    this.#endsAt = clock.now() + this.#life;
    this.#again = AGAIN_AFTER.map((ms) => Math.min(ms, this.#life));
  }

  /** Resolves when nothing of the hold can come to Redis any more, as far as is known. `over` is called then. */
  async run(over: () => void): Promise<void> {
    try {
      await this.#removeUntilOver();
    } finally {
      this.#state = become.over(this.#state);
      over();
      resolveAll(this.#requests);
    }
  }

  /**
   * Asks for a removal now. Resolves when a removal has succeeded that was sent after every attempt had ended, or when
   * the follow-up is over. An earlier removal is not enough: an attempt may write after it, and the client is closed
   * next. Also when the answer is final: those that follow go on, and nobody waits for them.
   */
  removeNow(): Promise<void> {
    return new Promise((resolve) => {
      this.#requests.push(resolve);
      this.endPause?.();
    });
  }

  /**
   * Removes what the hold has in Redis, and pauses, in turns. It is over when the key is gone for good: when a removal that was
   * sent after the end of every attempt has succeeded, and so have the later ones of `AGAIN_AFTER`; or when all has expired.
   */
  async #removeUntilOver(): Promise<void> {
    const hold = this.#hold;
    const { connection } = this.#givingBack;
    let result: RemovalResult | undefined;
    if (hold.attempts.inDoubt > 0) await this.#pause(GRACE);
    do {
      if (hold.attempts.inDoubt === 0 && !hold.attempts.reachedRedis) return;
      const requests = this.#requests.splice(0);
      const { inDoubt } = hold.attempts;
      if (result !== 'client is closed' || !connection.isClientClosed) result = await this.#remove();
      this.#reply(requests, result, inDoubt);
      if (result === 'gone') return;
      const isSettled = hold.attempts.inDoubt === 0;
      // The last attempt ended during the removal: Redis may have executed it after that. So it is removed at once.
      if (isSettled && inDoubt > 0) continue;
      // Somebody has asked for another removal meanwhile.
      if (isSettled && this.#requests.length > 0 && result === 'removed for now') continue;
      const ms = this.#pauseAfter(result);
      if (isSettled && ms === Number.POSITIVE_INFINITY) return;
      // An attempt in the queue of a client that is cut off may be executed much later, when it has reconnected.
      await this.#pause(ms);
    } while (!connection.isClosed);
  }

  /** A removal has ended. Those that asked for it wait for another one if an attempt was in doubt when it began. */
  #reply(requests: readonly (() => void)[], result: RemovalResult, inDoubt: number): void {
    if (result === 'removed for now' && inDoubt === 0) resolveAll(requests);
    else this.#requests.unshift(...requests);
    // A closed client sends nothing, and what is refused is refused again, also for those that asked meanwhile.
    if (result === 'client is closed' || result === 'refused') resolveAll(this.#requests.splice(0));
  }

  /** ms until the next removal; `Infinity`: it is made only when it is asked for, or when no attempt is in doubt any more. */
  #pauseAfter(result: RemovalResult): number {
    // A key expires by itself. A position in a queue may not, and a server that stands still may execute its attempts later
    // than any removal so far. A client that is closed for so long may never be connected again.
    const hasFailed = result === 'not removed' || result === 'refused';
    if (hasFailed && this.#hold.isEnqueued) this.#endsAt = clock.now() + this.#life;
    const next = result === 'removed for now' ? this.#again.shift() : this.#backoff.next();
    return next === undefined || clock.now() >= this.#endsAt ? Number.POSITIVE_INFINITY : next;
  }

  /** Ends early when the attempts have ended, or when a removal is asked for. */
  async #pause(ms: number): Promise<void> {
    const { inDoubt, settled } = this.#hold.attempts;
    this.#state = become.pausing(this.#state);
    let resume = (): void => undefined;
    const over = new Promise<void>((resolve) => (resume = resolve));
    this.endPause = resume;
    // Of a registry that is closed, a pause has no end.
    if (this.#givingBack.connection.isClosed) resume();
    else this.#givingBack.timer.schedule(resume, clock.now() + ms);
    await (inDoubt > 0 ? Promise.race([over, settled]) : over);
    this.#givingBack.timer.cancel(resume);
    this.endPause = undefined;
    this.#state = become.removing(this.#state);
  }

  /** `gone` is final: no attempt can be executed later, since all were answered or came over this connection. */
  async #remove(): Promise<RemovalResult> {
    const hold = this.#hold;
    const { inDoubt } = hold.attempts;
    try {
      // While it is unanswered, it may be on its way, and a second one would only wait behind it.
      for (const owner of hold.owners) {
        await answerOf(hold.release(this.#givingBack.commandTimeout, undefined, owner));
      }
    } catch (error) {
      // A refusal, such as NOPERM or NOAUTH, may end before the key expires.
      if (isClientClosed(error)) return 'client is closed';
      return isFinal(error) ? 'refused' : 'not removed';
    }
    // node-redis sends what waited for a reconnect together with its handshake, and counts the connection a moment
    // later.
    await clock.immediate();
    return inDoubt === 0 && (!hold.attempts.lostTrack || hold.attempts.isInOrder) ? 'gone' : 'removed for now';
  }
}

function resolveAll(requests: readonly (() => void)[]): void {
  for (const resolve of requests) resolve();
}

function describe(cause: unknown, elapsed: number): string {
  if (isFinal(cause)) return isErrorReply(cause) ? `Redis refused it: ${messageOf(cause)}` : reasonOf(cause);
  return `tried for ${Math.round(elapsed)} ms: ${reasonOf(cause)}`;
}
