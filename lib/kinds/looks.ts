import type { LockFormat } from '../api/lock-types';
import { type Look, oneOwner } from './common/look';
import { FAIR_LOOK } from './fair/look';
import { REDISSON_LOOK } from './redisson/look';
import { REDISSON_FAIR_LOOK } from './redisson-fair/look';
import { SHARED_LOOK } from './shared/look';
import { SPRING_LOOK } from './spring/look';

/**
 * What finds the locks of each format, with the queue that some of its types have. A table of its own beside `kinds/index`:
 * a registry needs none of it, and would have it in every bundle.
 */
export const LOOKS: Readonly<Record<LockFormat | 'shared', Look>> = {
  spring: oneOwner('spring', SPRING_LOOK, FAIR_LOOK),
  redisson: oneOwner('redisson', REDISSON_LOOK, REDISSON_FAIR_LOOK),
  shared: SHARED_LOOK,
};
