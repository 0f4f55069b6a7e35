// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are source code

/** A text of `lib`, and what stands in its place in a wrong build. It has to be found exactly once. */
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
      find: 'nextOwner: () => `${this.#clientId}:${++this.#sequence}`',
      replace: 'nextOwner: () => `${this.#clientId}:1`',
    },
  ],
  /** A release deletes the lock of any owner. */
  'release-unchecked': [
    // spin and pub-sub
    { find: "if holder ~= ARGV[1] then return -1 end\n${deleteBy('ARGV[2]')}", replace: "${deleteBy('ARGV[2]')}" },
    // fair
    {
      find: "if holder == ticket and redis.call('EXISTS', queue, tickets) == 0 then",
      replace: "if holder and redis.call('EXISTS', queue, tickets) == 0 then",
    },
    // redisson
    { find: 'if found ~= 1 then return found end', replace: 'if found == 0 then return found end' },
    // redisson-fair
    {
      find: "if found == -1 or type(found) == 'table' then return found end\nif found == 1 then",
      replace: 'if found ~= 0 then',
    },
  ],
} as const satisfies Record<string, readonly Replacement[]>;

export type WrongBuild = keyof typeof wrongBuilds;

export const WRONG_BUILDS = Object.keys(wrongBuilds) as WrongBuild[];
