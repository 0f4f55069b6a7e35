import { LockScript } from '../../redis/script';
import { inspectionScripts, queueScript } from '../common/inspector';
import { isFound, isGrant } from '../common/replies';
import { kindLua } from '../common/script-parts';
import { LONGEST_PAUSE } from '../common/shared-with-pollers';
import { SPRING_SCRIPTS } from '../spring/kind';

/*
 * The fair lock in Redis, all keys in one hash slot:
 *
 *   lock     string   the owner, as for spin and pub-sub: under one name the types exclude each other
 *   queue    zset     ticket -> score, when its caller called; of each process the first caller's ticket
 *   tickets  hash     <process>  -> "<end of its life, epoch ms>:<ttl in ms of its ticket>:<how it is notified>"
 *                     pause      -> when the last pause ends, in which a free lock is left to pollers
 *   fence    string   the last fencing token
 *
 * A ticket is "<process>:<number>". A caller that gets a free lock by the script that was sent for it, or as the next
 * caller of a release of its own process, has it under its ticket. Every grant from the queue has an owner value of its
 * own, "<ticket>@<server time of the grant>". So whatever is sent later for an earlier grant finds nothing.
 *
 * KEYS of every script: lock, queue, tickets [, fence]. Each argument costs the client and the server time: so several
 * are one text, with spaces between them, and on the busy path constants are text, since Redis would print the numbers.
 * Times of the server are in microseconds. Every script is idempotent.
 *
 * A table that they return is what `QueueReply` says, in this order: life, score, owner, token, holder, found,
 * refused, unreachable, pauseIn. What does not apply is '' or 0, or missing at the end.
 */

/** ms; a grant by hand-over lasts this long until it is renewed; never longer than the ttl that was asked for. */
export const CLAIM_WINDOW = 1_000;

/** Microseconds in which the message about a grant arrives, over a connection on which messages arrive at all. */
const MESSAGE_ARRIVES_WITHIN = 250_000;

/** In place of an owner: the holder may be of another lock type, or of a library that publishes no releases. */
export const OUTSIDER = 'outsider';

/** A message to the process that holds the lock: another process waits for it. */
export const WANTED = 'wanted';

/** How a process learns of a grant: by a message, or it polls. `none`: the caller does not wait. */
export type NotifiedBy = 'message' | 'poll' | 'none';

/** Microseconds; a score that is further ahead shows that the clock was set back. Then calls cannot be compared. */
const SET_BACK = 1_000_000;

/** ms by which a process is noted to live longer than it says, so that not every script has to write it. */
const NOTED_LONGER = 1_000;

const VALUES = {
  CLAIM_WINDOW,
  LONGEST_PAUSE_MICROS: 1000 * LONGEST_PAUSE,
  MESSAGE_ARRIVES_WITHIN,
  MESSAGE_WANTED: WANTED,
  NOTED_LONGER,
  OWNER_OUTSIDER: OUTSIDER,
  SET_BACK,
};

const text = (name: string) => kindLua(`fair/${name}`, VALUES);

export const ACQUIRE = new LockScript('acquire (fair)', text('acquire'), true, isGranted);
export const POLL = new LockScript('poll (fair)', text('poll'), true);
export const RELEASE = new LockScript('release (fair)', text('release'));

/** Releases for the next caller of the process. */
export const HAND_OVER = new LockScript('hand over (fair)', text('release'), true, isGranted);

/** The first renewal of a grant by hand-over: as that of spring, but an acquisition, which replicas have to have. */
export const RENEW_GRANT = new LockScript('renew a grant (fair)', () => SPRING_SCRIPTS.RENEW.source, false, isFound);

export const INSPECTION = inspectionScripts('fair', {
  THIS_KIND: 'spring',
  NOTIFY_PIECE: 'fair/notify-forced',
  QUEUE_LENGTH: 'ZCARD',
});

export const FIND_WAITER = queueScript('fair', "'ZRANGE', KEYS[1], 0, -1");

/** Whether the reply says that the lock was granted to a ticket of the process. */
function isGranted(reply: unknown): boolean {
  return isGrant(reply) || !['', OUTSIDER].includes((reply as string[])[2] ?? '');
}
