import type { LockNames } from '../redis/names';
import type { Redis } from '../redis/redis';
import { Subscriber } from '../redis/subscriber';
import { warn } from '../warnings';
import { type ContendedParts, ContendedProtocol } from './contended-protocol';
import { FairProtocol } from './fair/fair-protocol';
import { Poller } from './fair/poller';
import { QueueFormat } from './fair/queue-format';
import type { LockFormat } from './format';
import { LONGEST_SLEEP, Notification } from './notification';
import { Polling } from './polling';
import type { LockProtocol, ProtocolSettings } from './protocol';
import { QUEUE, RedissonFairProtocol } from './redisson/redisson-fair-protocol';
import { isShardedFor, RedissonFormat } from './redisson/redisson-format';
import { SpringFormat } from './spring/spring-format';
import { TimeSlice } from './time-slice';
import { YieldToListeners } from './yield-to-listeners';

/** The protocols of one registry. */
export interface Protocols {
  /** The protocol of one lock. Throws `RangeError` when there is no way to name in Redis what belongs to the lock. */
  open(names: LockNames): LockProtocol;
  /** Leaves nothing open. */
  close(): Promise<void>;
}

/** What is known of a lock type before there is a registry. */
export interface LockTypeTraits {
  /** ms; the default of the option `expireAfter`. */
  readonly expireAfter: number;
  /** Whether a lock's name has to begin with a `registryKey`. */
  readonly needsRegistryKey: boolean;
}

/** What is made once for each registry, when the lock type needs it. */
class Parts {
  readonly redis: Redis;
  readonly settings: ProtocolSettings;
  #hasWarned = false;

  constructor(redis: Redis, settings: ProtocolSettings) {
    this.redis = redis;
    this.settings = settings;
  }

  subscriber(isSharded: boolean, orPlain: boolean): Subscriber {
    const { subscriber: connection, commandTimeout: timeout, onWarning } = this.settings;
    return new Subscriber(this.redis.client, { connection, isSharded, orPlain, timeout, onWarning });
  }

  /** Warns once: without the right to publish, waiters find a release only when they poll. */
  readonly warnNotificationRefused = (): void => {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message =
      'The server refused to publish a release: waiters find it only when they poll. Allow PUBLISH (and SPUBLISH)';
    warn(this.settings.onWarning, { code: 'NOTIFICATION_REFUSED', message });
  };
}

/** Contended, with waiting by polling and sharing by time slices of `slice` ms by default. */
function polled(parts: Parts, format: LockFormat, slice: number): Protocols {
  const { idleBetweenTries, handOver = slice } = parts.settings;
  const polling = new Polling(idleBetweenTries);
  return contended({
    format,
    waiting: () => polling,
    sharing: () => new TimeSlice(handOver, idleBetweenTries),
    onNotificationRefused: parts.warnNotificationRefused,
  });
}

/** Contended, with waiting by notification and sharing by yielding to listeners after `slice` ms by default. */
function notified(parts: Parts, format: LockFormat, slice: number): Protocols {
  const { idleBetweenTries, handOver = slice } = parts.settings;
  const subscriber = parts.subscriber(format.isSharded, true);
  return contended(
    {
      format,
      waiting: (names) => new Notification(names, format, subscriber, idleBetweenTries),
      sharing: () => new YieldToListeners(handOver),
      onNotificationRefused: parts.warnNotificationRefused,
    },
    () => subscriber.close(),
  );
}

function contended(parts: ContendedParts, close: () => Promise<void> = async () => {}): Protocols {
  return {
    open(names) {
      parts.format.assertNames(names);
      return new ContendedProtocol(names, parts);
    },
    close,
  };
}

/** A queue in Redis on Spring's format. */
function fair(parts: Parts): Protocols {
  const { redis, settings } = parts;
  const { idleBetweenTries, commandTimeout, unavailableAfter } = settings;
  const subscriber = parts.subscriber(redis.isCluster, false);
  const poller = new Poller();
  const pollInterval = LONGEST_SLEEP * idleBetweenTries;
  const format = new QueueFormat(redis, settings, subscriber, pollInterval);
  const onNotificationRefused = parts.warnNotificationRefused;
  const services = {
    format,
    subscriber,
    poller,
    pollInterval,
    idleBetweenTries,
    commandTimeout,
    unavailableAfter,
    onNotificationRefused,
  };
  return {
    open(names) {
      format.assertNames(names);
      return new FairProtocol(names, services);
    },
    async close() {
      poller.close();
      await subscriber.close();
    },
  };
}

/** Redisson's queue on Redisson's format. */
function redissonFair(parts: Parts): Protocols {
  const { redis, settings } = parts;
  const format = new RedissonFormat(redis, settings);
  const subscriber = parts.subscriber(isShardedFor(redis, settings), true);
  return {
    open(names) {
      // Throws for a name whose queue would be in another hash slot.
      names.redissonKey(QUEUE);
      return new RedissonFairProtocol(names, { redis, settings, format, subscriber });
    },
    close: () => subscriber.close(),
  };
}

const SPRING: LockTypeTraits = { expireAfter: 60_000, needsRegistryKey: true };
/** Redisson's lockWatchdogTimeout. */
const REDISSON: LockTypeTraits = { expireAfter: 30_000, needsRegistryKey: false };

/**
 * The lock types. A new one is a line here, and the part that is missing: a way of waiting or sharing is one file, a
 * format is two (the format and its scripts), a type with a queue of its own is a folder.
 */
const lockTypes = {
  spin: { ...SPRING, protocols: (parts: Parts) => polled(parts, new SpringFormat(parts.redis, parts.settings), 400) },
  'pub-sub': {
    ...SPRING,
    protocols: (parts: Parts) => notified(parts, new SpringFormat(parts.redis, parts.settings), 50),
  },
  fair: { ...SPRING, protocols: fair },
  redisson: {
    ...REDISSON,
    protocols: (parts: Parts) => notified(parts, new RedissonFormat(parts.redis, parts.settings), 50),
  },
  'redisson-fair': { ...REDISSON, protocols: redissonFair },
} as const satisfies Record<string, LockTypeTraits & { protocols: (parts: Parts) => Protocols }>;

/** How a lock is written in Redis, and how a waiter learns that it is free. */
export type LockType = keyof typeof lockTypes;

export const LOCK_TYPES = Object.keys(lockTypes) as LockType[];

export function traitsOf(lockType: LockType): LockTypeTraits {
  return lockTypes[lockType];
}

export function createProtocols(lockType: LockType, redis: Redis, settings: ProtocolSettings): Protocols {
  return lockTypes[lockType].protocols(new Parts(redis, settings));
}
