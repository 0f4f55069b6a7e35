-- Deletes the lock, and begins a pause, in which it is left to pollers. Sets found.
--
-- Needs  pause; what functions.lua sets
-- ARGV[2]  and more: as of free.lua

-- @include fair/free FREED_KEYS=lock
found = deleted
redis.call('HSET', tickets, 'pause', digits(now + pause * 1000))
redis.call('PEXPIRE', tickets, math.max(redis.call('PTTL', tickets), math.ceil(pause)))
