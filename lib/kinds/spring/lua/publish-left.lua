-- Publishes that the lock is left to pollers: on the lock's channel alone, since readers of that of the registry would not
-- know the lock. Sets heard, as publish does.
--
-- FIRST, SECOND  as of publish
local heard = redis.pcall('PUBLISH', FIRST .. ':' .. KEYS[1], 'LEFT_TO_POLLERS')
local legacy = false and SECOND and redis.pcall('PUBLISH', FIRST, KEYS[1]) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + math.min(legacy, 2) or REFUSED
