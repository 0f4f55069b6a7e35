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
    // spin and pub-sub
    { find: "if holder ~= ARGV[1] then return -1 end\n${deleteBy('ARGV[2]')}", replace: "${deleteBy('ARGV[2]')}" },
    // fair
    {
      find: "local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)",
      replace: 'local isOwners = holder and true',
    },
    // redisson
    {
      find: "if owned ~= 1 then return owned end\n${deleteBy('ARGV[2]')}",
      replace: "if owned == 0 then return owned end\n${deleteBy('ARGV[2]')}",
    },
    // redisson-fair
    { find: 'if owned == -1 then return -1 end', replace: 'if owned == -1 then owned = 1 end' },
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
    { find: 'permitsOf(waiter.ticket) <= (permits or 1)', replace: 'permitsOf(waiter.ticket) <= (permits or 1) + 1' },
    { find: 'return not isWritten end', replace: 'return true end' },
  ],
} as const satisfies Record<string, readonly Replacement[]>;

export type WrongBuild = keyof typeof wrongBuilds;

export const WRONG_BUILDS = Object.keys(wrongBuilds) as WrongBuild[];
