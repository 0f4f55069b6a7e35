import { FAIR } from './fair/fair-type';
import type { LockTypeDefinition } from './lock-type';
import type { LockType } from './lock-type-traits';
import { REDISSON_FAIR } from './redisson/redisson-fair-type';
import { REDISSON } from './redisson/redisson-type';
import { PUB_SUB } from './spring/pub-sub-type';
import { SPIN } from './spring/spin-type';

export { LOCK_TYPES, type LockType } from './lock-type-traits';

/*
 * To add a lock type:
 *
 * 1. Write a file `…-type.ts` beside the format that it uses, as `spring/pub-sub-type.ts`. It names a format, a way of
 *    `waiting/` and a way of `sharing/`.
 * 2. Add a line here, and its name to `lock-type-traits.ts`. Everything else takes the types from there: the options, the
 *    command line, the contract suite, the simulation, the soak.
 * 3. Only where a part is missing, write it: a way of waiting or of sharing is one file; a format has a folder, as
 *    `spring/`; a type with a queue implements `LockProtocol` (`protocol.ts`), as `fair/fair-protocol.ts` does.
 * 4. Add an entry point of its own: a file in `lib/one-type/`, and its name in package.json.
 * 5. Add it to the tables of README.md and docs/operations.md. Tests say what is missing.
 */

/** The lock types. Functions, since the built library loads a type when the first registry of it is made. */
const lockTypes: Readonly<Record<LockType, () => LockTypeDefinition>> = {
  spin: () => SPIN,
  'pub-sub': () => PUB_SUB,
  fair: () => FAIR,
  redisson: () => REDISSON,
  'redisson-fair': () => REDISSON_FAIR,
};

export function definitionOf(lockType: LockType): LockTypeDefinition {
  return lockTypes[lockType]();
}
