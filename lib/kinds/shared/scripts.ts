import { SHARED_KINDS, type SharedKind } from '../../api/lock-types';
import { LockScript } from '../../redis/script';
import { queueScript } from '../common/inspector';
import { kindLua } from '../common/script-parts';

/*
 * A shared lock in Redis: several owners at a time, under a rule. Semaphores and read/write locks have one format. All
 * keys are in one hash slot:
 *
 *   lock      zset     <kind>:<owner> -> when its lease ends, epoch ms; the key expires with the last of them
 *                      <kind>:kept@<owner>: unlocked, and taken until its minHold ends; counts as any lease
 *                      semaphore:held, semaphore:leases -> how many permits are taken, and by how many leases, below 0
 *   waiters   hash     <kind>:<owner> -> a ticket: "<arrival, epoch µs>:<until when its process is waited for>:<until when
 *                                        it is let in without an attempt>:<when its lease would end then>", epoch ms.
 *                                        Its arrival is when its caller called, which may have waited in its process
 *                                        since; 0: a reader that waited when a writer left. The third time of a
 *                                        semaphore: until when its process passes a permit on
 *                      permits        -> "<the number of a semaphore>:<when it was given, epoch ms>", while there are
 *                                        tickets
 *   fence     string   the last fencing token, of writers only
 *
 * A kind is semaphore, read or write. An owner that has several permits ends with `*<number>`. The readers of a process
 * share one owner. Each process has one ticket of each kind at a time, so that the queue is short: a script reads all of
 * it. A waiting process polls, which prolongs its ticket.
 *
 * A script that makes room lets in those at the front of the queue that may enter. The lock is theirs at once where their
 * process was heard of a moment ago, with the ttl that it asked for then; others are asked to come. All of them hear of
 * it by one message: "<ticket>=<when its lease ends>" has the lock, "<ticket>" may come, and `wanted`: a writer waits,
 * also behind those.
 *
 * KEYS of every script: lock, waiters [, fence]. ARGV begins with: kind, owner. Every time is the server's. Every
 * script is idempotent.
 */

/** ms; a ticket that was entered further ahead of the server's clock shows that the clock was set back. */
export const SET_BACK = 1_000;

const VALUES = {
  // The sums of a semaphore, by score in this order.
  HELD_SUM: 'semaphore:held',
  LEASES_SUM: 'semaphore:leases',
  ALL_KINDS: SHARED_KINDS.map((kind) => `${kind} = 1`).join(', '),
  SET_BACK,
};

const text = (name: string) => kindLua(`shared/${name}`, VALUES);

const hasEntered = (reply: unknown) => Array.isArray(reply) && reply.length === 3;

export const ENTER = new LockScript('enter (shared)', text('enter'), true, hasEntered);
export const RELEASE = new LockScript('release (shared)', text('release'));
export const RENEW = new LockScript('renew (shared)', text('renew'));

/** Finds whether `owner` has a live lease of this kind. */
export const memberHeld = (kind: SharedKind) => kindLua('shared/held', { SHARED_KIND: kind });

/** See `inspectorOf`. */
export const INSPECTION = {
  inspect: new LockScript('inspect (shared)', text('inspect')),
  forceUnlock: new LockScript('unlock by force (shared)', text('force-unlock')),
};

/** The fields of the waiters are tickets, and no value looks like one. */
export const FIND_WAITER = queueScript('shared', "'HGETALL', KEYS[1]");
