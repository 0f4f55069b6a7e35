import type { LockNames } from '../redis/names';
import { type ContendedParts, ContendedProtocol } from './contended-protocol';
import { FairProtocol } from './fair/fair-protocol';
import { Poller } from './fair/poller';
import { QueueFormat } from './fair/queue-format';
import { HASH_HELD, STRING_HELD } from './held-scripts';
import { fairInspector, redissonInspector, springInspector } from './inspection/inspected-types';
import type { Inspector } from './inspection/inspector';
import type { LockType } from './lock-type-names';
import { LONGEST_SLEEP, Notification } from './notification';
import type { Parts } from './parts';
import { PATIENCE, PATIENCE_OF_POLLING, Pollers } from './pollers';
import { Polling } from './polling';
import type { LockProtocol } from './protocol';
import { PastPositions } from './redisson/past-positions';
import { RedissonFairProtocol } from './redisson/redisson-fair-protocol';
import { isShardedFor, RedissonFormat } from './redisson/redisson-format';
import { QUEUE, RedissonQueueFormat } from './redisson/redisson-queue-format';
import type { ScriptedFormat } from './scripted-format';
import { SpringFormat } from './spring/spring-format';
import { TimeSlice } from './time-slice';
import { YieldToListeners } from './yield-to-listeners';

export type { LockType } from './lock-type-names';
export { LOCK_TYPES } from './lock-type-traits';

/** The protocols of one registry. */
export interface Protocols {
  readonly inspector: Inspector;
  /** The protocol of one lock. Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  open(names: LockNames): LockProtocol;
  /** Ends timers. */
  close(): void;
}

/** Contended, with waiting by polling and sharing by time slices of `slice` ms by default. */
function polled(parts: Parts, format: ScriptedFormat, inspector: Inspector, slice: number): Protocols {
  const { idleBetweenTries, handOver = slice } = parts.settings;
  return contended(inspector, {
    format,
    waiting: (_names, pollers) => new Polling(idleBetweenTries, pollers),
    sharing: () => new TimeSlice(handOver, idleBetweenTries),
    pollers: () => new Pollers(idleBetweenTries, PATIENCE_OF_POLLING),
    onNotificationRefused: parts.warnNotificationRefused,
  });
}

/** Contended, with waiting by notification and sharing by yielding to listeners after `slice` ms by default. */
function notified(parts: Parts, format: ScriptedFormat, inspector: Inspector, slice: number): Protocols {
  const { idleBetweenTries, handOver = slice } = parts.settings;
  const subscriber = parts.subscriber(format.isSharded, true);
  return contended(inspector, {
    format,
    waiting: (names, pollers, onOthersRelease) =>
      new Notification(names, format, subscriber, idleBetweenTries, pollers, onOthersRelease),
    sharing: () => new YieldToListeners(handOver),
    pollers: () => new Pollers(idleBetweenTries, PATIENCE),
    onNotificationRefused: parts.warnNotificationRefused,
  });
}

function contended(inspector: Inspector, parts: ContendedParts): Protocols {
  return {
    inspector,
    open(names) {
      parts.format.assertNames(names);
      return new ContendedProtocol(names, parts);
    },
    close: () => undefined,
  };
}

/** A queue in Redis on Spring's format. */
function fair(parts: Parts): Protocols {
  const { redis, settings } = parts;
  const { idleBetweenTries, commandTimeout, unavailableAfter } = settings;
  const subscriber = parts.subscriber(redis.isCluster, false);
  const poller = new Poller();
  const longestPollInterval = LONGEST_SLEEP * idleBetweenTries;
  const format = new QueueFormat(redis, settings, subscriber, longestPollInterval);
  const onNotificationRefused = parts.warnNotificationRefused;
  const services = {
    format,
    subscriber,
    poller,
    longestPollInterval,
    idleBetweenTries,
    commandTimeout,
    unavailableAfter,
    onNotificationRefused,
  };
  return {
    inspector: fairInspector(redis, settings, format),
    open(names) {
      format.assertNames(names);
      return new FairProtocol(names, services);
    },
    close: () => poller.close(),
  };
}

/** Redisson's queue on Redisson's format. */
function redissonFair(parts: Parts): Protocols {
  const { redis, settings } = parts;
  const hash = new RedissonFormat(redis, settings);
  const format = new RedissonQueueFormat(redis, settings, hash);
  const subscriber = parts.subscriber(isShardedFor(redis, settings), true);
  const pastPositions = new PastPositions();
  const stopMonitoring = redis.monitor.onReconnect(() => pastPositions.removeAgain());
  return {
    inspector: redissonInspector(redis, settings, hash, true),
    open(names) {
      // Throws for a name whose queue would be in another hash slot.
      names.redissonKey(QUEUE, redis.isCluster);
      return new RedissonFairProtocol(names, { settings, format, subscriber, pastPositions });
    },
    close() {
      stopMonitoring();
      pastPositions.close();
    },
  };
}

/** The lock types. `docs/architecture.md` has the list of what a new one needs. */
const lockTypes = {
  spin: {
    held: STRING_HELD,
    protocols(parts: Parts): Protocols {
      const { redis, settings } = parts;
      const format = new SpringFormat(redis, settings);
      return polled(parts, format, springInspector(redis, settings, format, false), 400);
    },
  },
  'pub-sub': {
    held: STRING_HELD,
    protocols(parts: Parts): Protocols {
      const { redis, settings } = parts;
      const format = new SpringFormat(redis, settings);
      return notified(parts, format, springInspector(redis, settings, format, true), 50);
    },
  },
  fair: { held: STRING_HELD, protocols: fair },
  redisson: {
    held: HASH_HELD,
    protocols(parts: Parts): Protocols {
      const { redis, settings } = parts;
      const format = new RedissonFormat(redis, settings);
      return notified(parts, format, redissonInspector(redis, settings, format, false), 50);
    },
  },
  'redisson-fair': { held: HASH_HELD, protocols: redissonFair },
} as const satisfies Record<LockType, { held: string; protocols: (parts: Parts) => Protocols }>;

/** Lua that finds whether a lock is held: see `HeldScripts`. */
export function heldCheckOf(lockType: LockType): string {
  return lockTypes[lockType].held;
}

export function createProtocols(lockType: LockType, parts: Parts): Protocols {
  return lockTypes[lockType].protocols(parts);
}
