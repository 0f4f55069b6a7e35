import { clock } from '../clock';
import type { Redis } from '../redis/client';
import type { LockNames } from '../redis/names';
import { Subscriber } from '../redis/subscriber';
import type { Subscription } from '../redis/subscription';
import type { Wait } from '../wait';
import type { StrategySettings } from './index';
import { pollingInterval } from './polling';
import type { Claim, Grant, Refusal, Released, Yielded } from './strategy';
import { type KeyScripts, StringKeyStrategy } from './string-key';

/** A waiter looks again after so many idle intervals at the latest: a peer that spins does not tell of its releases. */
const LONGEST_SLEEP = 10;

/** ms; the least unit in which processes give precedence to each other. */
const LEAST_STEP = 2;

interface PubSubRefusal extends Refusal {
  /** The messages of the channel before the attempt was sent; `undefined`: it was not subscribed. */
  readonly messages: number | undefined;
}

interface PubSubYield extends Yielded {
  /** How many other listeners there were, and the messages of the channel then. */
  readonly others: number;
  readonly messages: number;
  /** ms */
  readonly step: number;
}

/**
 * Spring's PUB_SUB_LOCK: a release is told on a channel, and a waiter sleeps until then. A message is only a hint: who
 * loses the race goes on waiting.
 *
 * A process that has callers of its own in the queue keeps the lock for a slice of time, and then gives it up if others
 * listen. PUBLISH wakes listeners always in the same order, which would make the first subscriber win every race; so
 * a process that gave up the lock to n others lets so many go first: it waits n + 1 steps, less one for every release
 * it has heard of since. Who released longest ago tries first.
 */
export class PubSubStrategy extends StringKeyStrategy {
  readonly handOver = 50;
  readonly #idleBetweenTries: number;
  readonly #subscriber: Subscriber;
  /** Whether a script can tell how many listen: on a cluster PUBLISH does not count who listens on other nodes. */
  readonly #countsListeners: boolean;

  constructor(redis: Redis, settings: StrategySettings, scripts?: KeyScripts, isSharded = false) {
    super(redis, settings, scripts);
    this.#idleBetweenTries = settings.idleBetweenTries;
    this.#subscriber = new Subscriber(redis.client, settings.subscriber, settings.onWarning, {
      isSharded,
      orPlain: true,
      patience: settings.commandTimeout,
    });
    this.#countsListeners = isSharded || !redis.isCluster;
  }

  override async close(): Promise<void> {
    await this.#subscriber.close();
  }

  override attempt(claim: Claim, timeout: number): Promise<Grant | Refusal> {
    const messages = this.#standing(claim.names)?.messages;
    const attempt = super.attempt(claim, timeout);
    if (messages === undefined) return attempt;
    return attempt.then((outcome): Grant | PubSubRefusal => (outcome.granted ? outcome : { ...outcome, messages }));
  }

  async wait(claim: Claim, last: Refusal & Partial<PubSubRefusal>, wait: Wait): Promise<undefined> {
    const { lock } = claim.names;
    const subscription = this.#subscriber.listen(lock, this.channels(claim.names), (message, listening) => {
      if (this.isNews(message, claim.names)) listening.wake();
    });
    const idle = this.#idleBetweenTries;
    if (subscription === undefined) {
      await wait.sleep(pollingInterval(idle, last, wait.remaining));
      return;
    }
    try {
      // Refused before it stood: what happened since went unheard, so look again as soon as it stands.
      const isHeard = last.messages !== undefined;
      if (isHeard ? subscription.messages === last.messages : !subscription.isOpen) {
        const longest = isHeard ? idle * LONGEST_SLEEP : idle;
        await wait.suspend<void>(pollingInterval(longest, last, wait.remaining), (resume) => subscription.next(resume));
      }
      await wait.sleep(precedenceOfOthers(claim, subscription));
    } finally {
      this.#subscriber.leave(subscription);
    }
  }

  async transfer(from: Claim, to: Claim, mayYield: boolean, timeout: number): Promise<Grant | Yielded | Released> {
    const subscription = this.#standing(from.names);
    const sentAt = clock.now();
    const outcome = await this.#handOn(from, to, mayYield, timeout);
    if (typeof outcome === 'string' || 'granted' in outcome) return outcome;
    const now = clock.now();
    const step = Math.max(LEAST_STEP, now - sentAt);
    const yielded: PubSubYield = {
      granted: false,
      others: outcome.others,
      messages: subscription?.messages ?? 0,
      step,
      standBackUntil: now + (outcome.others + 2) * step,
    };
    return yielded;
  }

  async #handOn(from: Claim, to: Claim, mayYield: boolean, timeout: number): ReturnType<StringKeyStrategy['handOn']> {
    if (!mayYield) return this.handOn(from, to, timeout);
    if (this.#countsListeners) {
      const ownListeners = this.#standing(from.names)?.channels.length ?? 0;
      return this.handOn(from, to, timeout, ownListeners);
    }
    // Somebody may listen.
    const released = await this.release(from, timeout);
    return released === 'released' ? { others: 1 } : released;
  }

  /** Whether a message is about this lock: it may share the channel with others. */
  protected isNews(message: string, names: LockNames): boolean {
    return message === names.lock;
  }

  #standing(names: LockNames): Subscription | undefined {
    const subscription = this.#subscriber.peek(names.lock);
    return subscription?.isOpen ? subscription : undefined;
  }
}

/** ms for which this process lets others try first. */
function precedenceOfOthers({ lastYield }: Claim, subscription: Subscription): number {
  if (lastYield === undefined) return 0;
  const { others, messages, step } = lastYield as PubSubYield;
  const heard = Math.max(0, subscription.messages - messages);
  return Math.max(0, others + 1 - heard) * step;
}
