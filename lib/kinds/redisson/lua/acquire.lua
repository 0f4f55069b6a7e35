-- Acquires a lock.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence, with fencing
-- ARGV[1]  the owner
-- ARGV[2]  ttl in ms
-- Returns  1, or with a fence the token: the lock is the owner's; else { life of the holder's key in ms, its owner }
local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', lock) == 0 then
  -- @include redisson/take
  return KEYS[2] and redis.call('INCR', KEYS[2]) or 1
end
-- Not by pcall: a key of another type is an error that waiting does not mend.
if redis.call('HEXISTS', lock, owner) == 0 then
  local holder = redis.call('HKEYS', lock)[1]
  -- @include common/readable READ_VALUE=holder
  return { redis.call('PTTL', lock), holder }
end
-- @include common/prolong
return KEYS[2] and tonumber(redis.call('GET', KEYS[2]) or redis.call('INCR', KEYS[2])) or 1
