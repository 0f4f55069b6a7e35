import { clock, reliableUntil } from '../clock';
import type { Redis } from '../redis/client';
import type { LockNames } from '../redis/names';
import { Subscriber } from '../redis/subscriber';
import type { Wait } from '../wait';
import type { StrategySettings } from './index';
import { pollingInterval } from './polling';
import { isShardedFor } from './redisson';
import { LEAVE, OBTAIN } from './redisson-fair-scripts';
import { CHANNEL, REDISSON_WATCHDOG_TIMEOUT, RENEW, TOKEN, UNLOCKED } from './redisson-hash';
import { Renewals } from './renewals';
import type { Claim, Grant, LockStrategy, Ownership, Refusal, Released, Renewal } from './strategy';

/** A waiter looks again after so many idle intervals at the latest: whoever's turn it is may be dead. */
const LONGEST_SLEEP = 10;

interface FairRefusal extends Refusal {
  /** The messages of the claim's channel before the attempt was sent; `undefined`: it was not subscribed. */
  readonly messages: number | undefined;
}

/**
 * Redisson's RedissonFairLock: to be shared with Java processes that use `redisson.getFairLock(name)`. Who waits has a
 * place in a queue in Redis and a channel of its own; a release wakes the first in the queue, who then takes the lock.
 *
 * The callers of one process take the local turn first, so that a process has one place in the queue of a lock, and not
 * one for each caller. The order is that of arrival among processes (and Java threads), and among the callers of each;
 * a process with many callers gets one turn in every round. The reason: nobody takes out the places of a process that
 * was killed, and each of them holds up all others, Java's too, for the whole wait, five minutes. And so:
 * it is never handed over locally, which would be to overtake the queue.
 */
export class RedissonFairStrategy implements LockStrategy {
  static readonly expireAfter = REDISSON_WATCHDOG_TIMEOUT;
  static readonly needsRegistryKey = false;

  readonly queue = 'local';
  readonly handOver = 0;
  readonly #redis: Redis;
  readonly #settings: StrategySettings;
  readonly #subscriber: Subscriber;
  readonly #renewals: Renewals;
  readonly #publish: 'PUBLISH' | 'SPUBLISH';
  /** Claims that have, or may get, a place in a queue. */
  readonly #places = new Set<Claim>();
  #deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(redis: Redis, settings: StrategySettings) {
    const isSharded = isShardedFor(redis, settings);
    this.#redis = redis;
    this.#settings = settings;
    this.#subscriber = new Subscriber(redis.client, settings.subscriber, settings.onWarning, {
      isSharded,
      orPlain: true,
      patience: settings.commandTimeout,
    });
    this.#renewals = new Renewals(redis, RENEW);
    this.#publish = isSharded ? 'SPUBLISH' : 'PUBLISH';
  }

  assertNames(names: LockNames): void {
    names.redissonKey(TOKEN);
  }

  async attempt(claim: Claim, timeout: number): Promise<Grant | FairRefusal> {
    const { names, owner, ttl, waits } = claim;
    const messages = this.#messages(claim);
    const sentAt = clock.now();
    if (waits) {
      claim.place ??= { sentAt, rank: '' };
      this.#places.add(claim);
    }
    const args = [owner, String(ttl), this.#wait, waits ? '1' : '0'];
    const reply = await this.#redis.run(OBTAIN, this.#keys(names), args, timeout);
    if (Array.isArray(reply)) {
      return { granted: false, remaining: Number(reply[0]), roundTrip: clock.now() - sentAt, messages };
    }
    this.#places.delete(claim);
    return {
      granted: true,
      until: reliableUntil(sentAt, ttl),
      fencingToken: this.#settings.fencing ? Number(reply) : undefined,
    };
  }

  async wait(claim: Claim, last: Refusal & Partial<FairRefusal>, wait: Wait): Promise<undefined> {
    const { idleBetweenTries } = this.#settings;
    const channel = `${claim.names.redisson(CHANNEL)}:${claim.owner}`;
    const subscription = this.#subscriber.listen(claim.owner, [channel], (message, listening) => {
      if (message === UNLOCKED) listening.wake();
    });
    if (subscription === undefined) {
      await wait.sleep(pollingInterval(idleBetweenTries, last, wait.remaining));
      return;
    }
    try {
      // Refused before it stood: what happened since went unheard, so look again as soon as it stands.
      const isHeard = last.messages !== undefined;
      if (isHeard ? subscription.messages !== last.messages : subscription.isOpen) return;
      const longest = isHeard ? idleBetweenTries * LONGEST_SLEEP : idleBetweenTries;
      await wait.suspend<void>(pollingInterval(longest, last, wait.remaining), (resume) => subscription.next(resume));
    } finally {
      this.#subscriber.leave(subscription);
    }
  }

  renew(renewals: readonly Renewal[], timeout: number): Promise<readonly Ownership[]> {
    return this.#renewals.run(renewals, timeout);
  }

  async release(claim: Claim, timeout: number): Promise<Released> {
    const { names, owner } = claim;
    const args = [owner, this.#wait, this.#deleteCommand, this.#publish, names.redisson(CHANNEL)];
    this.#places.delete(claim); // if it fails, it is followed up like any release
    const reply = Number(await this.#redis.run(LEAVE, this.#keys(names), args, timeout));
    if (reply === 2) this.#deleteCommand = 'DEL';
    return reply === 0 ? 'expired' : reply === -1 ? 'stolen' : 'released';
  }

  /** The lock is for whoever is first in the queue. */
  transfer(from: Claim, _to: Claim, _mayYield: boolean, timeout: number): Promise<Released> {
    return this.release(from, timeout);
  }

  /** Whoever closes a registry is likely to close the client next: no place may be left behind for others to wait for. */
  async close(): Promise<void> {
    const { commandTimeout } = this.#settings;
    await Promise.all([...this.#places].map((claim) => this.release(claim, commandTimeout).catch(() => undefined)));
    await this.#subscriber.close();
  }

  get #wait(): string {
    return String(Math.ceil(this.#settings.fairLockWaitTimeout));
  }

  #messages({ owner }: Claim): number | undefined {
    const subscription = this.#subscriber.peek(owner);
    return subscription?.isOpen ? subscription.messages : undefined;
  }

  #keys(names: LockNames): string[] {
    const keys = [names.lock, names.redissonKey('redisson_lock_queue'), names.redissonKey('redisson_lock_timeout')];
    return this.#settings.fencing ? [...keys, names.redissonKey(TOKEN)] : keys;
  }
}
