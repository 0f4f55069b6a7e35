import { hashTag, type LockNames, noHashTag } from '../../redis/names';

/** A key or channel that belongs to the lock, named exactly as Redisson does: a name with a brace is not wrapped. */
export function redissonName({ lock }: LockNames, prefix: string): string {
  return lock.includes('{') ? `${prefix}:${lock}` : `${prefix}:{${lock}}`;
}

/**
 * As `redissonName`, for a key. With `isCluster` it throws `RangeError` where the braces in the lock's name put the key
 * into another hash slot: there Redisson fails too.
 */
export function redissonKey(names: LockNames, prefix: string, isCluster: boolean): string {
  const key = redissonName(names, prefix);
  if (isCluster && hashTag(key) !== (hashTag(names.lock) ?? names.lock)) throw noHashTag(names.lock);
  return key;
}
