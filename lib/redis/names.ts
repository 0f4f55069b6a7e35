/** What one lock is called in Redis. */
export class LockNames {
  /** The key of the lock. */
  readonly lock: string;
  readonly #registryKey: string;
  /** Of its companions; made for the first of them. */
  #stem: string | undefined;

  /** Without a registryKey, where the lock type allows that, the key is the lock's name. */
  constructor(registryKey: string, key: string) {
    this.lock = registryKey === '' ? key : `${registryKey}:${key}`;
    this.#registryKey = registryKey;
  }

  /** The channel on which its release is told, as Spring Integration's RedisLockRegistry names it. */
  get channel(): string {
    return `${this.legacyChannel}:${this.lock}`;
  }

  /** The one channel that Spring Integration up to 6.4.7 and 6.5.2 has for all locks of a registry. */
  get legacyChannel(): string {
    return `${this.#registryKey}-channel`;
  }

  /**
   * A key that belongs to the lock and shares its hash slot: a name without braces is wrapped, one with a hash tag
   * keeps it. Braces that make no hash tag leave no way to name a second key of the same slot.
   */
  companion(suffix: string): string {
    this.#stem ??= stem(this.lock);
    return `${this.#stem}:${suffix}`;
  }

  /** A key or channel that belongs to the lock, as Redisson names it: braces in the lock's name are taken for a hash tag. */
  redisson(prefix: string): string {
    return this.lock.includes('{') ? `${prefix}:${this.lock}` : `${prefix}:{${this.lock}}`;
  }

  /** As above; throws `RangeError` where the braces in the lock's name put the two into different hash slots. */
  redissonKey(prefix: string): string {
    const key = this.redisson(prefix);
    if (hashTag(key) === (hashTag(this.lock) ?? this.lock)) return key;
    throw new RangeError(`Expected the braces in "${this.lock}" to make a hash tag, as in "{tag}:rest"`);
  }
}

/** The part of a key that decides on its hash slot, where it is not the whole: between the first { and the next }. */
export function hashTag(name: string): string | undefined {
  const open = name.indexOf('{');
  const close = open < 0 ? -1 : name.indexOf('}', open);
  return close > open + 1 ? name.slice(open + 1, close) : undefined;
}

function stem(lock: string): string {
  if (hashTag(lock) !== undefined) return lock;
  if (/[{}]/.test(lock)) {
    throw new RangeError(`Expected the braces in "${lock}" to make a hash tag, as in "{tag}:rest"`);
  }
  return `{${lock}}`;
}
