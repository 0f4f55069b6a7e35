-- Renews a lease. Never shortens it.
--
-- KEYS[1]  the lock
-- KEYS[2]  the waiters
-- ARGV[1]  the kind: semaphore, read or write
-- ARGV[2]  the owner
-- ARGV[3]  ttl in ms
-- Returns  1: it has the ttl; { remaining ms }: it lasts longer; 0: there is none; -1: the key is of another type
-- @include shared/lock
local ttl = tonumber(ARGV[3])
-- @include shared/read-score OTHER_TYPE=-1
if not score or tonumber(score) <= now then
  -- Raises READONLY on a replica, where it says nothing that there is none.
  redis.call('ZREM', lock, member)
  return 0
end
if score - now >= ttl then return { score - now } end
-- Changes nothing. Out of memory: see script-parts.ts.
redis.call('ZREM', lock, '')
redis.call('ZADD', lock, 'XX', digits(now + ttl), member)
expireWithLastLease()
return 1
