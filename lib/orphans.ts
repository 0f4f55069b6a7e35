import { backgroundPause, clock } from './clock';
import type { Redis } from './redis/client';
import { CommandTimeoutError, isFinal, isServerAnswer } from './redis/failure';
import type { Claim, LockStrategy } from './strategies/strategy';

/** ms in which a healthy Redis has answered what was still in flight; then one more command settles it. */
const GRACE = 50;

/** ms that `close` waits for a healthy Redis to have undone what waiters left. */
const CLOSING = 500;

/** Notes that the outcome of `attempt` is not known: it failed without an answer, or nobody waited for it. */
export function doubt(claim: Claim, attempt: Promise<unknown>): void {
  claim.pendingDoubts++;
  const settled = wasAnswered(attempt).then((answered) => {
    claim.pendingDoubts--;
    if (!answered) claim.lostTrack = true;
  });
  claim.settled = Promise.all([claim.settled, settled]);
}

/** Settles when it is known whether Redis answered: an answer that comes late counts, a lost connection does not. */
async function wasAnswered(attempt: Promise<unknown>): Promise<boolean> {
  try {
    await attempt;
    return true;
  } catch (error) {
    return error instanceof CommandTimeoutError ? wasAnswered(error.late) : isServerAnswer(error);
  }
}

/**
 * Follows up claims that nobody holds and that may have, or may still get, a key in Redis: an acquisition that was
 * given up while its attempt was in flight, whose reply was lost, or that waits in the client's queue for a reconnect.
 */
export class Orphans {
  readonly #strategy: LockStrategy;
  readonly #redis: Redis;
  readonly #commandTimeout: number;
  readonly #followed = new Set<Promise<void>>();

  constructor(strategy: LockStrategy, redis: Redis, commandTimeout: number) {
    this.#strategy = strategy;
    this.#redis = redis;
    this.#commandTimeout = commandTimeout;
  }

  /** Deletes in the background what is the claim's, as long as an attempt of it may still be executed. */
  follow(claim: Claim): void {
    const followed = this.#follow(claim).finally(() => this.#followed.delete(followed));
    this.#followed.add(followed);
  }

  /** Gives what is being followed up a moment to come to its end. */
  async settle(): Promise<void> {
    await Promise.race([Promise.all(this.#followed), backgroundPause(CLOSING)]);
  }

  async #follow(claim: Claim): Promise<void> {
    // What was executed by now ends by then without us.
    const endsByItself = clock.now() + claim.ttl;
    await Promise.race([claim.settled, backgroundPause(GRACE)]);
    for (let interval = GRACE; clock.now() < endsByItself; interval *= 2) {
      if (await this.#isGone(claim)) return;
      await backgroundPause(Math.min(interval, claim.ttl / 4));
    }
    // An attempt in the queue of a client that is cut off may be executed much later, when it has reconnected.
    await claim.settled;
    await this.#isGone(claim);
  }

  /** Deletes if ours. Final only when no attempt can be executed after it: all were answered, or came over this connection. */
  async #isGone(claim: Claim): Promise<boolean> {
    const settled = claim.pendingDoubts === 0;
    try {
      await this.#strategy.release(claim, this.#commandTimeout);
    } catch (error) {
      return isFinal(error);
    }
    return settled && (!claim.lostTrack || (claim.epoch !== undefined && claim.epoch === this.#redis.connectionEpoch));
  }
}
