-- Acquires a lock.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence, with fencing
-- ARGV[1]  the owner
-- ARGV[2]  ttl in ms
-- Returns  1, or with a fence the token: the lock is the owner's; else { life of the holder's key in ms, its owner }
local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
-- Nearly always it is free. Why the server refused this shows below.
local set = not KEYS[2] and redis.pcall('SET', lock, owner, 'NX', 'PX', ttl)
if set and not set.err then return 1 end
local holder = redis.call('GET', lock)
if holder and holder ~= owner then
  -- @include common/readable READ_VALUE=holder
  return { redis.call('PTTL', lock), holder }
end
-- @include spring/before-mint IS_FENCING=KEYS[2]
if not holder then
  redis.call('SET', lock, owner, 'PX', ttl)
else
  -- @include common/prolong
end
if tonumber(last) and holder then return last end
if not KEYS[2] then return 1 end
-- @include common/mint FENCE_KEY=KEYS[2]
