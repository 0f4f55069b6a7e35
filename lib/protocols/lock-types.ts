import type { LockType } from '../api/lock-types';
import { FAIR } from './fair/fair-protocol';
import { REDISSON } from './redisson/redisson';
import { REDISSON_FAIR } from './redisson/redisson-fair';
import type { LockTypeDefinition } from './registry-parts';
import { PUB_SUB, SPIN } from './spring';

export { LOCK_TYPES, type LockType } from '../api/lock-types';

/* To add a lock type: docs/architecture.md, "To add a lock type". Tests say what is missing. */

export const LOCK_TYPE_DEFINITIONS: Readonly<Record<LockType, LockTypeDefinition>> = {
  spin: SPIN,
  'pub-sub': PUB_SUB,
  fair: FAIR,
  redisson: REDISSON,
  'redisson-fair': REDISSON_FAIR,
};
