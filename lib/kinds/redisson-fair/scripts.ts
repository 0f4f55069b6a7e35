import { LockScript } from '../../redis/script';
import { inspectionScripts } from '../common/inspector';
import { keepUntilItsEnd, returnWithListeners } from '../common/lock-scripts';
import { isGrant } from '../common/replies';
import { deleteBy, NOW, PROLONG } from '../common/script-parts';
import { HASH, LEFT_TO_POLLERS, publishOn, TAKE } from '../redisson/kind';

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

const PRELUDE = `
local lock, queue, timeouts, token = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, ttl, wait = ARGV[1], ARGV[2], tonumber(ARGV[3])
${NOW}`;

/**
 * Removes waiters that have had the first position for too long: they are taken for dead. Sets `head`. Without one,
 * removes what is left of the timeouts.
 */
const REMOVE_STALE = `
local head = redis.call('LINDEX', queue, 0)
while head do
  local timeout = redis.call('ZSCORE', timeouts, head)
  if timeout and tonumber(timeout) > now then break end
  redis.call('ZREM', timeouts, head)
  redis.call('LPOP', queue)
  head = redis.call('LINDEX', queue, 0)
end
if not head then
  ${deleteBy("'UNLINK'", 'timeouts')}
end`;

/**
 * Removes the positions of waiters of the owner's process that came before it. A process has one position, and its owner
 * values are numbered: the earlier ones have ended, though a server that has taken over may not know it. Sets `head`. The
 * position of the owner itself is removed too, or sets `isQueued`.
 */
const removePast = (own: 'remove' | 'find') => `
local process, number = string.match(owner, '^(.*):(%d+)$')
local removed = 0
for _, other in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  local its, itsNumber = string.match(other, '^(.*):(%d+)$')
  local isPast = process and its == process and tonumber(itsNumber) < tonumber(number)
  ${own === 'find' ? 'isQueued = isQueued or other == owner' : 'isPast = isPast or other == owner'}
  if isPast then
    redis.call('ZREM', timeouts, other)
    redis.call('LREM', queue, 0, other)
    removed = removed + 1
  elseif removed > 0 then
    -- Those behind wait for one less.
    redis.call('ZINCRBY', timeouts, -wait * removed, other)
  end
end
head = redis.call('LINDEX', queue, 0)`;

/** How a script begins that gives a lock back: takes the owner, and those of its process before it, out of the queue. */
const LEAVE_QUEUE = `${PRELUDE}
${REMOVE_STALE}
if head then
  ${removePast('remove')}
end`;

/** Sends a message to one waiter, on its own channel. */
const notify = (waiter: string, message?: string) => publishOn('ARGV[4]', `ARGV[5] .. ':' .. ${waiter}`, message);

/** Notifies the first waiter, if there is one. KEYS[2] is the queue. Sets `listeners`: as in lock-scripts.ts. */
const NOTIFY_FIRST = `
local first, listeners = redis.call('LINDEX', KEYS[2], 0), 0
if first then
  ${notify('first')}
  listeners = heard
end`;

/**
 * Acquires a lock, or takes a position in its queue.
 *
 * ARGV: as above, where the owner is that of the position, then 1 to queue or 0, the owner that is to hold the lock
 * Returns 1, or with a token key the token, when the lock is the owner's; else { ms after which the lock may be for
 * another waiter, the owner that holds it or nothing, 1 when the owner was the first in the queue before }. These ms are the
 * life of the holder's key or, when the lock is free, the time for which the first position is kept.
 */
export const ACQUIRE = new LockScript(
  'acquire (redisson-fair)',
  `${PRELUDE}
local queues, holder = ARGV[6] == '1', ARGV[7]
-- Changes nothing. Out of memory: see script-parts.ts.
redis.call('ZADD', timeouts, 'XX', 0, '')
${REMOVE_STALE}
local isQueued = head == owner
if head and not isQueued then
  ${removePast('find')}
end
local isFree = redis.call('EXISTS', lock) == 0
if isFree and (not head or head == owner) then
  if head then
    redis.call('LPOP', queue)
    redis.call('ZREM', timeouts, owner)
    -- Those behind wait for one less.
    for _, other in ipairs(redis.call('ZRANGE', timeouts, 0, -1)) do
      redis.call('ZINCRBY', timeouts, -wait, other)
    end
  end
  owner = holder
  ${TAKE}
  return token and redis.call('INCR', token) or 1
end
if not isFree and redis.call('HEXISTS', lock, holder) == 1 then
  ${PROLONG}
  return token and tonumber(redis.call('GET', token) or redis.call('INCR', token)) or 1
end
local life = redis.call('PTTL', lock)
if queues and not (isQueued and redis.call('ZSCORE', timeouts, owner)) then
  local last = redis.call('LINDEX', queue, -1)
  local timeout = last and last ~= owner and redis.call('ZSCORE', timeouts, last)
  local base = timeout and tonumber(timeout) - now or math.max(0, life)
  redis.call('ZADD', timeouts, base + wait + now, owner)
  redis.call('LREM', queue, 0, owner)
  redis.call('RPUSH', queue, owner)
end
if isFree then
  -- A Java waiter that gave up at its turn notified nobody: the head may not know that the lock is free.
  ${notify('head')}
  life = redis.call('ZSCORE', timeouts, head) - now
end
return { life, not isFree and redis.call('HKEYS', lock)[1], head == owner and 1 or 0 }`,
  true,
  isGrant,
);

/**
 * Releases a lock if it is the owner's, and takes the owner out of the queue. Notifies the first waiter when the lock
 * is free.
 *
 * ARGV: as above, then the command that deletes
 * Returns 1 deleted, 2 deleted by DEL, since the command was refused; 0 no key; -1 the key of another owner; where a
 * waiter is notified { that, listeners }.
 */
export const RELEASE = release('release (redisson-fair)', '');

/** What RELEASE does, but the lock is left to pollers: all waiters are asked to make no attempt. */
export const LEAVE = release(
  'leave to pollers (redisson-fair)',
  `
  local listeners = 0
  for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    ${notify('waiter', LEFT_TO_POLLERS)}
    listeners = heard
  end
  do ${returnWithListeners('deleted', 'listeners')} end`,
);

/** `leave`: what may end the script when the lock was released. */
function release(name: string, leave: string): LockScript {
  return new LockScript(
    name,
    `${LEAVE_QUEUE}
local state ${HASH.held}
if state == 'stolen' then return -1 end
local reply = 0
if not state then
  ${deleteBy('ARGV[6]')}
  ${leave}
  reply = deleted
end
${NOTIFY_FIRST}${returnWithListeners('reply', 'listeners')}`,
  );
}

/**
 * Gives a lock back that has to stay taken until its `minHold` ends, and takes the owner out of the queue. The first one
 * there is notified, on its own channel: its next attempt tells it when the key ends.
 *
 * ARGV: owner, 0, wait in ms, PUBLISH or SPUBLISH, channel of the lock; then the three numbers of a `Keep`
 * Returns 1 kept; 0 no key; -1 the key of another owner; where a waiter is notified { 1, listeners }.
 */
export const KEEP = new LockScript(
  'keep (redisson-fair)',
  `${LEAVE_QUEUE}${keepUntilItsEnd(HASH, 6)}
${NOTIFY_FIRST}${returnWithListeners('1', 'listeners')}`,
);

/** Notified by: PUBLISH or SPUBLISH, the channel of the lock. The first in the queue has a channel of its own. */
export const INSPECTION = inspectionScripts('redisson-fair', HASH.holder, 'LLEN', NOTIFY_FIRST);
