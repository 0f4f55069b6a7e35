import { CONTENTION_MUTATIONS } from './mutations/contention';
import { FAIR_MUTATIONS } from './mutations/fair';
import { LEASE_MUTATIONS } from './mutations/leases';
import type { Mutation } from './mutations/mutation';
import { PASSING_ON_MUTATIONS } from './mutations/passing-on';
import { SHARED_MUTATIONS } from './mutations/shared';

export const MUTATIONS: readonly Mutation[] = [
  ...LEASE_MUTATIONS,
  ...CONTENTION_MUTATIONS,
  ...PASSING_ON_MUTATIONS,
  ...FAIR_MUTATIONS,
  ...SHARED_MUTATIONS,
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
