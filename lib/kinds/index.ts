import type { LockType } from '../api/lock-types';
import type { LockTypeDefinition } from './common/registry-parts';
import { FAIR } from './fair/kind';
import { REDISSON } from './redisson/kind';
import { REDISSON_FAIR } from './redisson-fair/kind';
import { SPRING } from './spring/kind';

export { LOCK_TYPES, type LockType } from '../api/lock-types';

/* To add a lock type: docs/architecture.md, "To add a lock type". Tests say what is missing. */

export const LOCK_TYPE_DEFINITIONS: Readonly<Record<LockType, LockTypeDefinition>> = {
  spin: SPRING,
  'pub-sub': SPRING,
  fair: FAIR,
  redisson: REDISSON,
  'redisson-fair': REDISSON_FAIR,
};
