import { hashTag, type LockNames, noHashTag } from '../../redis/names';

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

/** A key or channel that belongs to the lock, named exactly as Redisson does: a name with a brace is not wrapped. */
export function redissonName({ lock }: Pick<LockNames, 'lock'>, prefix: string): string {
  return lock.includes('{') ? `${prefix}:${lock}` : `${prefix}:{${lock}}`;
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
