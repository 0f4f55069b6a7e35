/** How a lease shares its key: with nobody, with as many as there are permits, with other readers, or with nobody as a writer. */
export type Access = 'exclusive' | 'permit' | 'read' | 'write';

/** A span of time for which a caller relied on a lock, by one clock for all callers. */
export interface Stay<Call = string | number> {
  /** Whose it is. One call may have several. */
  readonly call: Call;
  readonly key: string;
  /** By default exclusive. */
  readonly access?: Access;
  /** How many permits it takes, by default 1. */
  readonly permits?: number;
  readonly from: number;
  /** Infinity: it has not ended. */
  readonly to: number;
  /** Nobody else may enter before, though the caller may not rely on it any more. */
  readonly promisedUntil?: number;
}

/** An entry that had to wait. */
export interface Conflict<S extends Stay = Stay> {
  /** Somebody was inside, or had been promised to be alone. */
  readonly kind: 'too many holders' | 'promise broken';
  readonly entering: S;
  readonly others: readonly S[];
  /** ms for which they would be together. */
  readonly together: number;
}

interface Rules {
  /** Of a semaphore. */
  readonly permits?: number;
  /** ms by which the clocks of two callers may differ. */
  readonly tolerance?: number;
}

/**
 * Judges mutual exclusion for all that test or measure it, by what the callers believed and not by what is in Redis. Each
 * stay is compared with those of its key that began before it.
 */
export function conflicts<S extends Stay>(
  stays: readonly S[],
  { permits = 1, tolerance = 0 }: Rules = {},
): Conflict<S>[] {
  return [...byKey(stays).values()].flatMap((ofKey) => {
    const found: Conflict<S>[] = [];
    let open: S[] = [];
    for (const entering of ofKey.sort((a, b) => a.from - b.from)) {
      const lasts = (until: number) => until - tolerance > entering.from;
      open = open.filter(({ to, promisedUntil = to }) => lasts(Math.max(to, promisedUntil)));
      const others = open.filter(({ call }) => call !== entering.call);
      open.push(entering);
      const inside = keepingOut(
        entering,
        others.filter(({ to }) => lasts(to)),
        permits,
      );
      const promised = keepingOut(
        entering,
        others.filter(({ to, promisedUntil = to }) => lasts(promisedUntil)),
        permits,
      );
      const [kind, culprits] =
        inside.length > 0 ? (['too many holders', inside] as const) : (['promise broken', promised] as const);
      if (culprits.length === 0) continue;
      const longest = Math.max(...culprits.map(({ to, promisedUntil = to }) => Math.max(to, promisedUntil)));
      const together = Math.min(longest, entering.to) - entering.from;
      found.push({ kind, entering, others: culprits, together });
    }
    return found;
  });
}

/** Whether two leases of one key may be valid at one time. Permits are counted apart. */
export function mayShare(one: Access, other: Access): boolean {
  return one === other && (one === 'permit' || one === 'read');
}

/** Those of the others that keep the newcomer out. */
function keepingOut<S extends Stay>(
  { access = 'exclusive', permits = 1 }: S,
  others: readonly S[],
  limit: number,
): readonly S[] {
  const excluded = others.filter((other) => !mayShare(access, other.access ?? 'exclusive'));
  if (access !== 'permit' || excluded.length > 0) return excluded;
  return others.reduce((sum, other) => sum + (other.permits ?? 1), permits) > limit ? others : [];
}

/** A fencing token that is not above that of an earlier grant of its key. */
export interface FallingToken<G> {
  readonly grant: G;
  readonly before: G;
}

interface Grant {
  readonly key: string;
  readonly token?: number | undefined;
  readonly from: number;
}

/** `last`: the last grant of each key so far, which is brought up to date. */
export function fallingTokens<G extends Grant>(grants: readonly G[], last = new Map<string, G>()): FallingToken<G>[] {
  return [...grants]
    .sort((a, b) => a.from - b.from)
    .flatMap((grant) => {
      const before = last.get(grant.key);
      last.set(grant.key, grant);
      if (before?.token === undefined || (grant.token !== undefined && grant.token > before.token)) return [];
      return [{ grant, before }];
    });
}

function byKey<S extends { readonly key: string }>(stays: readonly S[]): Map<string, S[]> {
  const keys = new Map<string, S[]>();
  for (const stay of stays) {
    const ofKey = keys.get(stay.key);
    if (ofKey === undefined) keys.set(stay.key, [stay]);
    else ofKey.push(stay);
  }
  return keys;
}
