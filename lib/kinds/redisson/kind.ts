import type { RegistrySettings } from '../../api/options';
import { hashTag, type LockNames, noHashTag } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { contended } from '../common/contended';
import { LISTENERS, lockScripts } from '../common/lock-scripts';
import type { LockTypeDefinition } from '../common/registry-parts';
import { HASH_HELD, PROLONG } from '../common/script-parts';
import { ScriptedFormat } from '../common/scripted-format';

/*
 * The lock as a hash key, in the format of Redisson's locks: one field "<uuid>:<number>", which is the owner; its value
 * is the number of holds of the owner; the key always has an expiry. Redisson compares owners only with its own, so
 * ours may differ with every acquisition. The value is always 1: the scripts set it and do not count, so they are
 * idempotent.
 */

/** The body of the message about a release. Redisson decodes it as a number; anything else breaks its decoder. */
export const UNLOCKED = '0';

/** The body of the message that a lock is left to pollers. Redisson knows 0 and 1, and ignores it. */
export const LEFT_TO_POLLERS = '2';

/**
 * Publishes a message with `command`, PUBLISH or SPUBLISH. See `OwnerFormat`. Servers before 7 have no SPUBLISH: then, on
 * a cluster, PUBLISH does not count the listeners on other nodes. All in Lua.
 */
export const publishOn = (command: string, channel: string, message = UNLOCKED) => `
local heard = redis.pcall(${command}, ${channel}, '${message}')
if type(heard) == 'table' and ${command} == 'SPUBLISH' then
  heard = redis.pcall('PUBLISH', ${channel}, '${message}')
  if type(heard) == 'number' then heard = ${LISTENERS.uncounted} end
end
if type(heard) == 'table' then heard = ${LISTENERS.refused} end`;

/** Makes `lock` that of `owner` for `ttl` ms. */
export const TAKE = `
redis.call('HSET', lock, owner, 1)
redis.call('PEXPIRE', lock, ttl)`;

/** See `OwnerFormat`. To give it, the new field comes before the old one goes: a hash without fields is deleted. */
export const HASH = {
  held: HASH_HELD,
  holder: "redis.call('HKEYS', KEYS[1])[1]",
  isGiven: "redis.pcall('HEXISTS', lock, to) == 1",
  give: `
-- Changes nothing. Out of memory: see script-parts.ts.
redis.call('HDEL', lock, '')
redis.call('HSET', lock, to, 1)
redis.call('HDEL', lock, owner)
-- Last: see script-parts.ts.
redis.call('PEXPIRE', lock, left)`,
};

/** The fence is a counter that Redisson's fenced locks have too. */
export const REDISSON_SCRIPTS = lockScripts('redisson', {
  acquire: `
local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', lock) == 0 then
  ${TAKE}
  return KEYS[2] and redis.call('INCR', KEYS[2]) or 1
end
-- Not by pcall: a key of another type is an error that waiting does not mend.
if redis.call('HEXISTS', lock, owner) == 0 then return { redis.call('PTTL', lock), redis.call('HKEYS', lock)[1] } end
${PROLONG}
return KEYS[2] and tonumber(redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2])) or 1`,
  ...HASH,
  publish: (first, message) => publishOn(`ARGV[${first}]`, `ARGV[${first + 1}]`, message),
  leftToPollers: LEFT_TO_POLLERS,
  beforeTokens: '',
  // What INCR does, once for each caller.
  tokens: `
if not most then return 1 end
local first = redis.call('INCRBY', KEYS[2], most) - most + 1
return string.format(most > 1 and '%.0f %.0f' or '%.0f', first, most)`,
});

/* The prefixes of names: see `redissonName`. */

/** The channel on which releases are published. */
export const CHANNEL = 'redisson_lock__channel';

/**
 * The counter of fencing tokens, as RFencedLock has it. It is shared with Java, so the rule is Redisson's: plus one for
 * every acquisition by a process that uses tokens. The key is never deleted and has no expiry. Its tokens rise as long
 * as Redis keeps it: after a failover that lost it, or an eviction, it begins again at 1. That is weaker than the fence
 * of the string types, which then takes over from the server's clock.
 */
export const TOKEN = 'redisson_lock_token';

/** The keys of the fair lock: the queue of waiters, and the ends of their positions. */
export const QUEUE = 'redisson_lock_queue';
export const TIMEOUTS = 'redisson_lock_timeout';

/** A key or channel that belongs to the lock, named exactly as Redisson does: a name with a brace is not wrapped. */
export function redissonName({ lock }: LockNames, prefix: string): string {
  return lock.includes('{') ? `${prefix}:${lock}` : `${prefix}:{${lock}}`;
}

/** The lock that a queue belongs to, by the name of its key; `undefined`: it is none. */
export function lockOfRedissonQueue(name: string): string | undefined {
  if (!name.startsWith(`${QUEUE}:`)) return undefined;
  const rest = name.slice(QUEUE.length + 1);
  return /^\{([^{}]+)\}$/.exec(rest)?.[1] ?? rest;
}

/**
 * Says what `redissonName` says, for a key or a sharded channel. With `isCluster` it throws `RangeError` where the braces
 * in the lock's name put it into another hash slot: there Redisson fails too.
 */
export function redissonKey(names: LockNames, prefix: string, isCluster: boolean): string {
  const key = redissonName(names, prefix);
  if (isCluster && hashTag(key) !== (hashTag(names.lock) ?? names.lock)) throw noHashTag(names.lock);
  return key;
}

/**
 * Redisson's hash key. A lock's name is that of the Java side: `registryKey:key` (what a
 * NameMapper there makes of it), or the key alone where the registryKey is empty.
 */
export class RedissonFormat extends ScriptedFormat {
  constructor(redis: Redis, { fencing, shardedSubscriptionMode: mode }: RegistrySettings) {
    // Redisson's own rule: on a cluster, if the server has sharded channels.
    super(redis, fencing, REDISSON_SCRIPTS, mode === 'auto' ? redis.isCluster : mode === 'on');
  }

  channels(names: LockNames): readonly string[] {
    return [redissonName(names, CHANNEL)];
  }

  /** Scripts publish on sharded channels of the lock's slot only. */
  override assertNames(names: LockNames): void {
    super.assertNames(names);
    if (this.isSharded) redissonKey(names, CHANNEL, this.redis.isCluster);
  }

  protected releaseOf(): string {
    return UNLOCKED;
  }

  notification(names: LockNames): readonly string[] {
    return [this.isSharded ? 'SPUBLISH' : 'PUBLISH', ...this.channels(names)];
  }

  tokensFor(callers: number): number {
    return callers;
  }

  protected fence(names: LockNames): string {
    return redissonKey(names, TOKEN, this.redis.isCluster);
  }
}

/** Contended on Redisson's format, with waiting by notification. */
export const REDISSON: LockTypeDefinition = (parts) =>
  contended(parts, new RedissonFormat(parts.redis, parts.settings));
