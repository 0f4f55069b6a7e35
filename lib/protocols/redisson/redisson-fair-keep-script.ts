import { LockScript } from '../../redis/script';
import { isFound } from '../format/replies';
import { keep } from './keep-script';
import { NOTIFY_FIRST } from './redisson-fair-scripts';

/**
 * Gives a lock back as the script for `redisson` does. The first in the queue is notified, on its own channel.
 *
 * KEYS: lock, queue, timeouts [, token]
 * ARGV: owner, 0, wait in ms, PUBLISH or SPUBLISH, channel of the lock; then the three numbers of a `Keep`
 * Returns 1 kept; 0 no key; -1 the key of another owner.
 */
export const KEEP = new LockScript(
  'keep (redisson-fair)',
  `${keep(6)}${NOTIFY_FIRST}
return 1`,
  isFound,
);
