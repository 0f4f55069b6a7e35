import type { LockType } from '../plan';

/** A fix that is taken out of the library, to show that the simulation finds what it is for. */
export interface Mutation {
  readonly name: string;
  /** What goes wrong without the fix. */
  readonly finding: string;
  readonly types: readonly LockType[];
  /** Texts of the compiled library, each of which is there exactly once, and what replaces them. */
  readonly replacements: readonly (readonly [text: string, by: string])[];
}
