import { LockScript } from '../../redis/script';
import { inspectionScripts, queueScript } from '../common/inspector';
import { isGrant } from '../common/replies';
import { kindLua } from '../common/script-parts';
import { HASH } from '../redisson/kind';

/*
 * Redisson's fair lock:
 *
 *   lock      hash   as for RLock
 *   queue     list   the waiters' owner values, in the order of arrival
 *   timeouts  zset   owner -> epoch ms until which its position is kept: that of the waiter before it, or what is left of
 *                    the holder's key, plus a wait of its own
 *   token     string the last fencing token; of Node only, since Redisson has no fair lock with tokens
 *
 * Queue and timeouts have no expiry, and each side has to wait for what the other leaves in them. So a position without
 * a timeout is never made, and one that is found at the head is removed (Redisson's own scripts would never remove it).
 * A waiter that gives up takes its position out, and notifies the next one, for which the lock may be free. Eviction, or a
 * command by hand, may take the queue alone: without a queue there are no timeouts, and a waiter that is not in it comes
 * to its end. Redisson's scripts look for the timeout only, so a Java waiter would never come into the queue again.
 *
 * KEYS of every script: lock, queue, timeouts [, token]. ARGV begins with: owner, ttl in ms, wait in ms, PUBLISH or
 * SPUBLISH, channel of the lock. "Now" is the server's time: one clock less that may be wrong. Java clients use their
 * own; as between two of them, a position is kept longer or shorter by the difference. Every script is idempotent.
 */

const VALUES = {
  ...HASH,
  THIS_KIND: 'redisson',
  // The first in the queue has a channel of its own.
  NOTIFY_PIECE: 'redisson-fair/notify-first',
  QUEUE_LENGTH: 'LLEN',
};

const text = (name: string) => kindLua(`redisson-fair/${name}`, VALUES);

export const ACQUIRE = new LockScript('acquire (redisson-fair)', text('acquire'), true, isGrant);
export const RELEASE = new LockScript('release (redisson-fair)', text('release'));
export const LEAVE = new LockScript('leave to pollers (redisson-fair)', text('leave'));
export const KEEP = new LockScript('keep (redisson-fair)', text('keep'));
export const INSPECTION = inspectionScripts('redisson-fair', VALUES);
export const FIND_WAITER = queueScript('redisson-fair', "'LRANGE', KEYS[1], 0, -1");
