-- Acquires a lock, or takes a position in its queue.
--
-- KEYS[1]  the lock
-- KEYS[2]  the queue
-- KEYS[3]  the timeouts
-- KEYS[4]  the last token, with fencing
-- ARGV[1]  the owner of the position
-- ARGV[2]  ttl in ms
-- ARGV[3]  wait in ms
-- ARGV[4]  PUBLISH or SPUBLISH
-- ARGV[5]  the channel of the lock
-- ARGV[6]  1 to queue, or 0
-- ARGV[7]  the owner that is to hold the lock
-- Returns  1, or with a token key the token: the lock is the owner's; else { ms after which the lock may be for another
--          waiter; the owner that holds it, or nothing; 1: the owner was the first in the queue before, or 0 }. These ms
--          are the life of the holder's key or, when the lock is free, the time for which the first position is kept
-- @include redisson-fair/prelude
local queues, holder = ARGV[6] == '1', ARGV[7]
-- Changes nothing. Out of memory: see script-parts.ts.
redis.call('ZADD', timeouts, 'XX', 0, '')
-- @include redisson-fair/remove-stale
local isQueued = head == owner
if head and not isQueued then
  -- @include redisson-fair/remove-past OWN_POSITION=own-found
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
  -- @include redisson/take
  return token and redis.call('INCR', token) or 1
end
if not isFree and redis.call('HEXISTS', lock, holder) == 1 then
  -- @include common/prolong
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
  -- @include redisson/publish-on PUBLISH_COMMAND=ARGV[4] ON_CHANNEL="ARGV[5] .. ':' .. head" MESSAGE_TEXT=MESSAGE_UNLOCKED
  life = redis.call('ZSCORE', timeouts, head) - now
end
local other = not isFree and redis.call('HKEYS', lock)[1]
-- @include common/readable READ_VALUE=other
return { life, other, head == owner and 1 or 0 }
