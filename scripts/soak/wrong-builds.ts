// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are source code

/** A text of `lib`, which is there exactly once, and its replacement in a wrong build. */
export interface Replacement {
  readonly find: string;
  readonly replace: string;
}

/**
 * Mistakes that the soak must find: `npm run soak -- --wrong NAME` gives them to the workers. A text that is not found
 * exactly once is an error, so that a change of the library cannot make a wrong build right unnoticed.
 */
export const wrongBuilds = {
  /** All acquisitions of a process have one owner value: what comes late for one lease meets the next. */
  'owner-reuse': [
    {
      find: 'return () => `${id}:${++count}`;',
      replace: 'return () => `${id}:1`;',
    },
  ],
  /** A release deletes the lock of any owner. */
  'release-unchecked': [
    // spin, pub-sub and redisson
    {
      find: "${examine(held)}${RETURN_UNLESS_HELD}\n${deleteBy('ARGV[2]')}",
      replace: "${examine(held)}\nif state == 'expired' then return 0 end\n${deleteBy('ARGV[2]')}",
    },
    // fair
    {
      find: "local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)",
      replace: 'local isOwners = holder and true',
    },
    // redisson-fair
    {
      find: "if state == 'stolen' and redis.call('EXISTS', lock) == 1 then return -1 end",
      replace: "if state == 'stolen' and redis.call('EXISTS', lock) == 1 then state = nil end",
    },
  ],
  /** A lock is free as soon as it is unlocked, whatever its `minHold`. */
  'min-hold-ignored': [
    {
      find: 'if (this.#minHoldUntil === 0) return undefined;',
      replace: 'if (this.#minHoldUntil >= 0) return undefined;',
    },
  ],
  /** A semaphore has a permit too many, and readers enter beside a writer. */
  'rule-broken': [
    { find: 'return holders + front < (permits or 1)', replace: 'return holders + front <= (permits or 1)' },
    { find: 'return not isWritten and writers == 0', replace: 'return true' },
  ],
} as const satisfies Record<string, readonly Replacement[]>;

export type WrongBuild = keyof typeof wrongBuilds;

export const WRONG_BUILDS = Object.keys(wrongBuilds) as WrongBuild[];
