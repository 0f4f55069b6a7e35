/*
 * A lock that was unlocked before its `minHold` ended is kept: its key stays until then, with another owner value,
 * `kept@<owner>`. So no later command for the lease matches the key: no renewal, no release, no repeated attempt. It
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
