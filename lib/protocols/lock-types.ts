import type { LockType } from '../api/lock-types';
import { FAIR } from './fair/fair-protocol';
import type { LockTypeDefinition } from './lock-type';
import { REDISSON_FAIR } from './redisson/redisson-fair-type';
import { REDISSON } from './redisson/redisson-type';
import { PUB_SUB } from './spring/pub-sub-type';
import { SPIN } from './spring/spin-type';

export { LOCK_TYPES, type LockType } from '../api/lock-types';

/* To add a lock type: docs/architecture.md, "To add a lock type". Tests say what is missing. */

export const LOCK_TYPE_DEFINITIONS: Readonly<Record<LockType, LockTypeDefinition>> = {
  spin: SPIN,
  'pub-sub': PUB_SUB,
  fair: FAIR,
  redisson: REDISSON,
  'redisson-fair': REDISSON_FAIR,
};
