import { LockScript } from '../redis/script';
import { HOLD, MINT, TELL, WHOSE } from './redisson-hash';
import { deleteBy, isFound } from './string-key';

/*
 * Redisson's fair lock, all keys in one hash slot:
 *
 *   lock      hash   as for RLock
 *   queue     list   who waits, in the order of arrival: owner values
 *   timeouts  zset   owner -> epoch ms until which its place is kept: that of the one before, or what is left of the
 *                    holder's key, and a wait of its own on top
 *   token     string the last fencing token; of Node only, since Redisson has no fair lock with tokens
 *
 * Queue and timeouts have no expiry, and what one side leaves in them the other has to wait for. So a place without a
 * timeout is never made, and one that is found at the head is dropped (to Redisson's own scripts it would be a head that
 * never leaves); and whoever gives up takes its place out, and wakes the next one if it might have been its turn.
 *
 * KEYS of every script: lock, queue, timeouts [, token]. "Now" is the server's time, not this process': one clock less
 * that may be wrong. Java clients take their own; as between two of them, a place is kept longer or shorter by the
 * difference.
 *
 * Every script bears being executed twice.
 */

const PRELUDE = `
local lock, queue, timeouts = KEYS[1], KEYS[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Drops whoever had the first place for too long: it is taken for dead.
local function dropStale()
  while true do
    local head = redis.call('LINDEX', queue, 0)
    if not head then return end
    local timeout = redis.call('ZSCORE', timeouts, head)
    if timeout and tonumber(timeout) > now then return end
    redis.call('ZREM', timeouts, head)
    redis.call('LPOP', queue)
  end
end`;

/**
 * ARGV owner, ttl in ms, wait in ms, 1 to queue or 0. Only an owner that queues can be refused without having to leave.
 * Returns 1 when the lock is the owner's, with a token key its token; else { ms after which it may be another's turn }:
 * the life of the holder's key, or, when the lock is free, for how long the place of the first in the queue is kept.
 */
export const OBTAIN = new LockScript(`${PRELUDE}${MINT}${HOLD}
local owner, ttl, wait = ARGV[1], ARGV[2], tonumber(ARGV[3])
dropStale()
local head = redis.call('LINDEX', queue, 0)
local isFree = redis.call('EXISTS', lock) == 0
if isFree and (not head or head == owner) then
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, owner)
  -- Those behind wait for one less.
  for _, other in ipairs(redis.call('ZRANGE', timeouts, 0, -1)) do
    redis.call('ZINCRBY', timeouts, -wait, other)
  end
  hold(owner, ttl)
  return mint(4)
end
if not isFree and redis.call('HEXISTS', lock, owner) == 1 then
  prolong(ttl)
  return mint(4, true)
end
local life = redis.call('PTTL', lock)
if ARGV[4] == '1' and not redis.call('ZSCORE', timeouts, owner) then
  local last = redis.call('LINDEX', queue, -1)
  local timeout = last and last ~= owner and redis.call('ZSCORE', timeouts, last)
  local base = timeout and tonumber(timeout) - now or math.max(0, life)
  redis.call('ZADD', timeouts, base + wait + now, owner)
  redis.call('LREM', queue, 0, owner)
  redis.call('RPUSH', queue, owner)
end
if isFree then life = redis.call('ZSCORE', timeouts, head) - now end
return { life }`);

/**
 * ARGV owner, wait in ms, command that deletes, PUBLISH or SPUBLISH, channel of the lock. Gives the lock back if it is
 * the owner's, and else takes the owner out of the queue; the first in it is told when the lock is free.
 * Returns 1 or 2 deleted (2: by DEL, since the command is not to be had); 0 nobody's; -1 another owner's.
 */
export const LEAVE = new LockScript(
  `${PRELUDE}${WHOSE}${TELL}
local owner, wait = ARGV[1], tonumber(ARGV[2])
dropStale()
if redis.call('ZSCORE', timeouts, owner) then
  local isBehind = false
  for _, other in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    if isBehind then redis.call('ZINCRBY', timeouts, -wait, other) end
    isBehind = isBehind or other == owner
  end
  redis.call('ZREM', timeouts, owner)
  redis.call('LREM', queue, 0, owner)
end
local found = whose(lock, owner)
if found == -1 or type(found) == 'table' then return found end
if found == 1 then
  ${deleteBy('ARGV[3]')}
  found = deleted
end
local head = redis.call('LINDEX', queue, 0)
if head then tell(ARGV[4], ARGV[5] .. ':' .. head) end
return found`,
  isFound,
);
