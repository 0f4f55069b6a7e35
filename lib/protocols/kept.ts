/*
 * A lock that was unlocked before its `minHold` ended is kept: its key stays until then, with another owner value,
 * `kept@<owner>`. So nothing finds it that is sent later for the lease: no renewal, no release, no repeated attempt. It
 * belongs to nobody, and ends by itself. Names of registries have no "@", so no owner value begins like this.
 */

/** What the owner value of a kept lock begins with. */
export const KEPT = 'kept@';

/** How long a lock is to be kept; in whole ms. */
export interface Keep {
  /** By the local clock, from when the script is sent. */
  readonly left: number;
  /** From the acquisition, and the ttl that the key was given then. */
  readonly minHold: number;
  readonly ttl: number;
}

/** As the scripts take it. */
export function keepArguments({ left, minHold, ttl }: Keep): string[] {
  return [String(left), String(minHold), String(ttl)];
}

/** Whether the owner value is that of a lock that was unlocked, and is kept. */
export function isKept(owner: string | undefined): boolean {
  return owner?.startsWith(KEPT) ?? false;
}

/** The owner value that a kept lock had before. */
export function holderOf(owner: string): string {
  return isKept(owner) ? owner.slice(KEPT.length) : owner;
}

/**
 * Sets `left`: ms for which the key is kept from now on. ARGV[first]: the three numbers of a `Keep`.
 *
 * What the key still has to live tells how long ago it was given its ttl, by the server's clock: more exactly than the
 * local clock, since no time passes on the way. A key that was renewed looks younger than it is. A machine that was
 * suspended, or slow to read the grant, counts too little. So both ways may find too much, never too little, and the
 * smaller one counts. `age`: Lua that finds the age of the grant in ms, where it shows otherwise.
 */
export const leftToKeep = (first: number, age?: string) => `
local left, life = tonumber(ARGV[${first}]), redis.call('PTTL', KEYS[1])
local age = ${age === undefined ? '' : `${age} or `}life >= 0 and ARGV[${first + 2}] - life
if age then left = math.min(left, ARGV[${first + 1}] - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))`;
