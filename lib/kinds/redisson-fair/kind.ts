import { AskedLock } from '../../core/availability';
import { repeated } from '../../core/give-back';
import type {
  Grant,
  HoldOfProtocol,
  Keep,
  LockProtocol,
  NotGranted,
  Ownership,
  Refusal,
  Released,
} from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock, inBackground } from '../../internal/clock';
import { BackgroundPauses } from '../../internal/timers';
import { answerOf } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Script } from '../../redis/script';
import { asOwner, inspectorOf } from '../common/inspector';
import type { LockTypeDefinition, RegistryParts } from '../common/registry-parts';
import { keepArguments, kindLua, LISTENERS } from '../common/script-parts';
import { type Pollers, USUAL_PACE_FOR } from '../common/shared-with-pollers';
import { type Waited, Waiting } from '../common/waiting';
import { redissonKey, redissonName } from '../redisson/keys';
import { RedissonFormat } from '../redisson/kind';
import { QUEUE, TIMEOUTS } from './keys';
import { ACQUIRE, FIND_WAITER, INSPECTION, KEEP, LEAVE, RELEASE } from './scripts';

/** ms by which a command may reach the server after its connection was given up. */
const LATE_COMMAND = 10_000;

/** Redisson's queue on Redisson's format. */
export const REDISSON_FAIR: LockTypeDefinition = (parts) => {
  const { redis, settings } = parts;
  const format = new RedissonFairFormat(redis, settings);
  const pastPositions = new PastPositions();
  const stopMonitoring = redis.monitor.onReconnect(() => pastPositions.removeAgain());
  return {
    held: kindLua('redisson/held'),
    inspector: inspectorOf(redis, INSPECTION, format, {
      queue: { script: FIND_WAITER, key: (names) => redissonName(names, QUEUE), beginnings: asOwner },
    }),
    open(names) {
      format.assertNames(names);
      return new RedissonFairProtocol(names, { parts, format, pastPositions });
    },
    close() {
      stopMonitoring();
      pastPositions.close();
    },
  };
};

/** The format of RLock, with the keys of the queue. */
export class RedissonFairFormat extends RedissonFormat {
  override assertNames(names: LockNames): void {
    super.assertNames(names);
    redissonKey(names, QUEUE, this.redis.isCluster);
  }

  override keys(names: LockNames): string[] {
    const [lock, ...token] = super.keys(names) as [string, ...string[]];
    return [lock, redissonName(names, QUEUE), redissonName(names, TIMEOUTS), ...token];
  }
}

/** Shared by the locks of a registry. */
interface RedissonFairServices {
  readonly parts: RegistryParts;
  readonly format: RedissonFairFormat;
  readonly pastPositions: PastPositions;
}

/**
 * Redisson's RedissonFairLock, shared with Java processes that use `redisson.getFairLock(name)`. A waiter has a
 * position in a queue in Redis and a channel of its own. A release notifies the first in the queue, which then takes
 * the lock.
 *
 * The callers of one process take the local turn first, so that a process has one position in the queue of a lock. The
 * order is that of arrival among processes (and Java threads), and among the callers of each. The reason: nobody takes
 * out the positions of a process that was killed, and each of them holds up all others, Java's too, for the whole wait,
 * five minutes. For the same reason the lock is not handed over locally: that would overtake the queue.
 */
export class RedissonFairProtocol extends AskedLock implements LockProtocol {
  readonly hasQueue = true;
  readonly #names: LockNames;
  readonly #services: RedissonFairServices;
  readonly #pollers: Pollers | undefined;
  /** The last owner value that had a position in the queue. Its channel is named after it. */
  #enqueued = '';
  /** What has that position, or the lock since. */
  #written = '';
  #waiting: Waiting | undefined;

  constructor(names: LockNames, services: RedissonFairServices) {
    super();
    this.#names = names;
    this.#services = services;
    this.#pollers = services.parts.pollers(USUAL_PACE_FOR);
  }

  override get hasLearnt(): boolean {
    return super.hasLearnt || this.#pollers !== undefined || this.#enqueued !== '';
  }

  /** The queue serves every process in its order, but not pollers. */
  standBack(wait: Wait): Promise<void> | undefined {
    return wait.standBack(this.#pollers?.freeFor ?? 0);
  }

  /** Acquires the lock, or takes a position in its queue if the caller waits. */
  attempt(hold: HoldOfProtocol, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt } = hold;
    const waiting = ticket === this.#enqueued ? this.#waiting : undefined;
    const hintsBefore = waiting?.isSubscribed ? waiting.hints : undefined;
    return this.#run(ACQUIRE, ticket, ttl, [waits ? '1' : '0', hold.owner], timeout, (reply): Grant | Refusal => {
      const answer = this.#services.format.answerIn(ACQUIRE, reply, 3, hold, hintsBefore);
      if (!answer.granted && hold.attempts.wereNeverInDoubt) hold.owner = ticket;
      if (!answer.granted && waits && ticket !== this.#enqueued) {
        this.#enqueued = ticket;
        this.#waiting = undefined;
      }
      if (ticket === this.#enqueued) this.#written = hold.owner;
      if (answer.granted) {
        this.#pollers?.acquired(sentAt);
        return answer;
      }
      const now = sentAt + answer.roundTrip;
      // Only the first in the queue is notified.
      if ((reply as unknown[])[2] === 1) this.#pollers?.refused(now, answer, waiting?.hints ?? 0);
      else this.#pollers?.refusedByListener(now);
      return answer;
    });
  }

  wait({ ticket }: HoldOfProtocol, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    const { format, parts } = this.#services;
    const names = this.#names;
    const waited: Waited = {
      lock: names.lock,
      channels: format.channels(names).map((channel) => `${channel}:${ticket}`),
      meaningOf: (message) => format.meaningOf(message, names),
    };
    const subscriber = parts.subscriber(format.isSharded, true);
    this.#waiting ??= new Waiting(waited, subscriber, parts.settings.idleBetweenTries, this.#pollers);
    return this.#waiting.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#services.format.renew(this.#names, owner, ttl, timeout, settle);
  }

  /**
   * Also takes the owner out of the queue. A position is given up when the release is answered and not before: after a
   * reconnect it is removed once more, and that must not overtake the release. A release without an answer is repeated
   * by its caller.
   */
  async release(owner: string, timeout: number, keep?: Keep): Promise<Released> {
    const found = await (keep ? this.#giveBack(KEEP, owner, timeout, keep) : this.#free(owner, timeout));
    if (owner === this.#written) this.#services.pastPositions.add(this, () => this.#releaseAgain(owner));
    return found;
  }

  async #free(owner: string, timeout: number): Promise<Released> {
    const toPollers = this.#pollers?.isDue(clock.now()) ?? false;
    const found = await this.#giveBack(toPollers ? LEAVE : RELEASE, owner, timeout);
    // A release that finds no key notifies the first in the queue. If that fails, waiters of this library poll.
    const endPause = () => this.#releaseAgain(owner).catch(() => undefined);
    if (found === 'released' && toPollers) this.#pollers?.left(clock.now(), endPause);
    else if (found === 'released') this.#pollers?.released(clock.now());
    return found;
  }

  #giveBack(script: Script, owner: string, timeout: number, keep?: Keep): Promise<Released> {
    const { format, parts } = this.#services;
    const how = keep === undefined ? [format.deleteCommand] : keepArguments(keep);
    return this.#run(script, owner, 0, how, timeout, (reply) => {
      const { found, listeners } = format.givenBackIn(script, reply);
      if (listeners === LISTENERS.refused) parts.warnNotificationRefused();
      return found;
    });
  }

  async #releaseAgain(owner: string): Promise<void> {
    const { redis, settings } = this.#services.parts;
    if (!redis.isClosed) await this.#giveBack(RELEASE, owner, settings.commandTimeout);
  }

  /** The lock is for the first in the queue. */
  mayPassOn(): boolean {
    return false;
  }

  /**
   * A position has no expiry. It ends one `fairLockWaitTimeout` after the position before it. This covers the first
   * position, and late commands.
   */
  orphanLife({ longestTtl, isEnqueued }: HoldOfProtocol): number {
    return isEnqueued ? longestTtl + this.#services.parts.settings.fairLockWaitTimeout + LATE_COMMAND : longestTtl;
  }

  #run<T>(
    script: Script,
    owner: string,
    ttl: number,
    last: readonly string[],
    timeout: number,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const names = this.#names;
    const { format, parts } = this.#services;
    const wait = String(Math.ceil(parts.settings.fairLockWaitTimeout));
    const args = [owner, String(ttl), wait, ...format.notification(names), ...last];
    return parts.redis.run(script, format.keys(names), args, timeout, read);
  }
}

/** ms; a failover forgets only what was written within this time before a client learns of it. */
const REMEMBERED = 30_000;

/** ms for which a removal is tried after a reconnect. Another reconnect begins anew. */
const TRIED_FOR = 10_000;

interface PastPosition {
  readonly remove: () => Promise<unknown>;
  readonly timer: NodeJS.Timeout;
  /** The position is being removed again. */
  isUnderWay: boolean;
}

/**
 * Positions that were given up lately, in the queues of the locks of one registry. A server that takes over may not
 * know that they were given up, and a position does not expire: it would hold up all others. So they are removed once
 * more after each reconnect.
 */
export class PastPositions {
  /** The last one of each lock. It is forgotten soon: it refers to a lock that may have been evicted. */
  readonly #positions = new Map<object, PastPosition>();
  readonly #pauses = new BackgroundPauses();
  #round = 0;
  #endsAt = 0;

  /** The last position in the queue of `lock` is being given up. `remove` also removes those that came before it. */
  add(lock: object, remove: () => Promise<unknown>): void {
    clock.clearTimeout(this.#positions.get(lock)?.timer);
    const timer = clock.setTimeout(() => this.#positions.delete(lock), REMEMBERED);
    timer.unref?.();
    this.#positions.set(lock, { remove, timer, isUnderWay: false });
  }

  /**
   * A connection was made again, perhaps to another server. Clients that have several connections say so for each try to
   * connect that fails, too.
   */
  removeAgain(): void {
    this.#round++;
    this.#endsAt = clock.now() + TRIED_FOR;
    // Without an await between them, so that they go to Redis together.
    inBackground(() => {
      for (const position of this.#positions.values()) if (!position.isUnderWay) void this.#repeat(position);
    });
  }

  close(): void {
    this.#endsAt = 0;
    this.#pauses.close();
    for (const { timer } of this.#positions.values()) clock.clearTimeout(timer);
    this.#positions.clear();
  }

  /** Until Redis has answered a removal that was sent since the last reconnect. */
  async #repeat(position: PastPosition): Promise<void> {
    position.isUnderWay = true;
    let round: number;
    do {
      round = this.#round;
      // While it is unanswered, a second one would only wait behind it.
      const ask = () => answerOf(position.remove());
      await repeated(
        ask,
        () => this.#endsAt,
        (ms) => this.#pauses.pause(ms),
      ).catch(() => undefined);
    } while (round !== this.#round && clock.now() < this.#endsAt);
    position.isUnderWay = false;
  }
}
