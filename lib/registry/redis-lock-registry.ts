import { randomUUID } from 'node:crypto';
import type { LockState } from '../api/distributed-lock';
import {
  DEFAULT_TYPE,
  LOCK_TYPES,
  type LockType,
  listed,
  SHARDED_SUBSCRIPTION_MODES,
  traitsOf,
} from '../api/lock-types';
import type { RedisLockRegistryOptions, RedisSubscriber, RegistrySettings, SegmentedLockOptions } from '../api/options';
import { registryId } from '../api/owner-name';
import { type WarningListener, warn } from '../api/warnings';
import type { LockBackend } from '../core/backend';
import { Inbox } from '../core/inbox';
import { Inspection } from '../core/inspection';
import { knownAcrossCopies } from '../internal/copies';
import {
  boolean,
  type Checks,
  checkedOptions,
  duration,
  notNegative,
  oneOf,
  wholeNumber,
} from '../internal/validation';
import { LOCK_TYPE_DEFINITIONS } from '../kinds';
import { RedisInboxes } from '../kinds/common/inbox-channels';
import { leaseScripts } from '../kinds/common/lease-scripts';
import { RegistryParts } from '../kinds/common/registry-parts';
import { resultsIn } from '../kinds/common/results';
import { sharedBackend } from '../kinds/shared/kind';
import {
  describeValue,
  describeWrongClient,
  isRedisClient,
  type RedisClient,
  type RedisClientOrFromIoredis,
} from '../redis/client';
import { canScan, scan } from '../redis/cluster';
import { explainWrongType } from '../redis/key-placement';
import { hashTag, LockNames, literally } from '../redis/names';
import { Redis } from '../redis/redis';
import { isSubscriber } from '../redis/subscriber';
import type { SegmentedLock } from '../segmented/segmented-lock';
import { BackedLockRegistry } from './backed-lock-registry';
import { registryChecks, registrySettings } from './settings';

/**
 * A registry of distributed locks on Redis: hands out one `RedisLock` for each key.
 *
 * Make one for each process and `registryKey`, and inject it. The client stays the caller's: it is neither closed
 * nor changed, and it must be connected, or be about to be, when locks are taken.
 * @example
 * const registry = new RedisLockRegistry(client, { registryKey: 'orders', lockType: 'pub-sub' });
 * await registry.run('order:42', () => ship(order));
 */
export class RedisLockRegistry extends BackedLockRegistry {
  /**
   * @throws TypeError when an option is unknown or has a wrong type, or the client has no `eval` and `evalSha`, or no
   *   `duplicate` for `minReplicas`.
   * @throws RangeError when an option is out of range.
   */
  constructor(client: RedisClientOrFromIoredis, options: RedisLockRegistryOptions) {
    if (!isRedisClient(client)) throw new TypeError(describeWrongClient(client));
    const { pollInterval } = client;
    const checked = checkedOptions(CHECKS, options);
    const given = pollInterval ? { idleBetweenTries: pollInterval, ...checked } : checked;
    const settings = registrySettings(given, DEFAULT_TYPE);
    if (pollInterval && !traitsOf(settings.lockType).polls) throw new TypeError(needsMessages(settings.lockType));
    super(settings, redisBackend(client, settings));
  }

  override segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    const { registryKey, onWarning } = this.settings;
    if (hashTag(registryKey) !== undefined) {
      const message = `The hash tag in registryKey "${registryKey}" puts all segments of "${key}" into one slot of a cluster`;
      warn(onWarning, { code: 'SEGMENTS_SHARE_SLOT', message, key });
    }
    return super.segmented(key, options);
  }
}

knownAcrossCopies({ RedisLockRegistry });

const CHECKS: Checks<RedisLockRegistryOptions> = {
  ...registryChecks,
  idleBetweenTries: duration,
  handOver: notNegative,
  sharedWithPollers: boolean,
  legacyChannel: boolean,
  shardedSubscriptionMode: oneOf(SHARDED_SUBSCRIPTION_MODES),
  fairLockWaitTimeout: duration,
  minReplicas: (name, value) => wholeNumber(name, value, 0),
  replicaTimeout: duration,
  subscriber,
};

function needsMessages(lockType: LockType): string {
  const polling = listed(LOCK_TYPES.filter((type) => traitsOf(type).polls).map((type) => `"${type}"`));
  return `Expected \`lockType\` to be ${polling}, as this client gets no messages, got "${lockType}", which waits for them`;
}

function subscriber(name: string, value: unknown): RedisSubscriber {
  if (isSubscriber(value)) return value;
  const expectation = `Expected \`${name}\` to be a client with the methods subscribe and unsubscribe`;
  throw new TypeError(`${expectation}, got ${describeValue(value)}`);
}

/** The locks of one registry in Redis. With `minReplicas`, throws `TypeError` for a client without a `duplicate`. */
function redisBackend(client: RedisClient, settings: RegistrySettings): LockBackend {
  const redis = new Redis(client, settings.registryKey, settings.commandTimeout, settings);
  const parts = new RegistryParts(redis, settings);
  const inboxes = new RedisInboxes(parts);
  const protocols = LOCK_TYPE_DEFINITIONS[settings.lockType](parts);
  return {
    connection: redis,
    leaseScripts: leaseScripts(redis, protocols.held),
    inspector: protocols.inspector,
    shared: sharedBackend(parts),
    inboxes,
    results: resultsIn(
      redis,
      traitsOf(settings.lockType).polls ? undefined : parts.subscriber(false, false),
      settings.idleBetweenTries,
    ),
    open: (names) => protocols.open(names),
    keys(prefix, match, count, timeout) {
      if (!canScan(client)) throw new TypeError('Expected `client` to have the method scan, to list locks');
      return scan(client, literally(prefix) + match, count, timeout);
    },
    explainWrongType: (error, { lock }, usedAs, timeout) => explainWrongType(error, redis, lock, usedAs, timeout),
    onReconnect: (listener) => redis.monitor.onReconnect(listener),
    onSilence: (listener) => redis.onSilence(listener),
    endMessages: () => parts.close(),
    async close() {
      protocols.close?.();
      inboxes.close();
      redis.close();
    },
  };
}

/** For a lock that no registry here has. Its registryKey may be empty with every type: Java has such locks. */
async function withInspection<T>(
  client: RedisClient,
  [registryKey, key]: NameOfLock,
  lockType: LockType,
  options: { readonly onWarning?: WarningListener | undefined; readonly name?: string | undefined },
  use: (inspection: Inspection, names: LockNames, inbox: Inbox) => Promise<T>,
): Promise<T> {
  const names = LockNames.checked(registryKey, key);
  const settings = { ...registrySettings({ registryKey: names.lock, lockType, ...options }, lockType), registryKey };
  const { commandTimeout, name } = settings;
  const backend = redisBackend(client, settings);
  try {
    const id = registryId(name, traitsOf(lockType).nameSeparator, randomUUID());
    const inbox = new Inbox(
      backend.inboxes,
      id,
      commandTimeout,
      () => [],
      () => undefined,
    );
    return await use(new Inspection(backend, id, commandTimeout, `a lock of type ${lockType}`), names, inbox);
  } finally {
    await backend.close();
  }
}

type NameOfLock = readonly [registryKey: string, key: string];

/** Unlocks a lock by force. */
export function forceUnlockOf(
  client: RedisClient,
  name: NameOfLock,
  lockType: LockType,
  onWarning?: WarningListener,
): Promise<LockState> {
  return withInspection(client, name, lockType, { onWarning }, (inspection, names) =>
    inspection.forceUnlock(names.lock, names),
  );
}

/** See `DistributedLock.ask`. `by`: the name of who asks. */
export function askOf(
  client: RedisClient,
  name: NameOfLock,
  lockType: LockType,
  why: string,
  by?: string,
): Promise<boolean> {
  return withInspection(client, name, lockType, { name: by }, (inspection, names, inbox) =>
    inspection.withOwners(names.lock, names, (owners) => inbox.ask(owners, why, names)),
  );
}
