import type { LockType } from './plan';

/** A fix that is taken out of the library, to show that the simulation finds what it is for. */
export interface Mutation {
  readonly name: string;
  /** What goes wrong without the fix. */
  readonly finding: string;
  readonly types: readonly LockType[];
  /** Texts of the compiled library, each of which stands there exactly once, and what takes its place. */
  readonly replacements: readonly (readonly [text: string, by: string])[];
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'release-without-check',
    finding: 'a late release deletes the key of the next holder',
    types: ['spin'],
    replacements: [['if holder ~= ARGV[1] then return -1 end\n${deleteBy', '${deleteBy']],
  },
  {
    name: 'owner-of-the-process',
    finding: 'every acquisition of a process has the same owner value',
    types: ['spin'],
    replacements: [['`${this.#clientId}:${++this.#sequence}`', '`${this.#clientId}:1`']],
  },
  {
    name: 'deadline-from-the-reply',
    finding: 'a lease is counted from the reply, and not from before its request',
    types: ['spin'],
    replacements: [['return sentAt + ttl - (ttl * 1e-3 + 1);', 'return clock.now() + ttl - (ttl * 1e-3 + 1);']],
  },
];

/** The bundle without the fix. Throws when a text does not stand there exactly once. */
export function mutate(bundle: string, name: string): string {
  const mutation = MUTATIONS.find((one) => one.name === name);
  if (mutation === undefined) {
    throw new RangeError(`Unknown mutation "${name}": one of ${MUTATIONS.map((one) => one.name).join(', ')}`);
  }
  return mutation.replacements.reduce((mutated, [text, by]) => {
    const count = mutated.split(text).length - 1;
    if (count === 1) return mutated.replace(text, () => by);
    throw new Error(
      `Mutation "${name}" expects this text once in the compiled library, and finds it ${count} times: ${text}`,
    );
  }, bundle);
}
