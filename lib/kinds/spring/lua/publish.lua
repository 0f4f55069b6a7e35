-- Publishes the lock's name on the lock's channel, and where SECOND is given also on that of the registry. Who listens
-- there mostly waits for another lock: this process and one other count. Sets heard: the listeners, or REFUSED. pcall: else
-- a user without rights on channels could not release.
--
-- FIRST   the channel of the registry
-- SECOND  any text: the name goes there too
local heard = redis.pcall('PUBLISH', FIRST .. ':' .. KEYS[1], KEYS[1])
local legacy = true and SECOND and redis.pcall('PUBLISH', FIRST, KEYS[1]) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + math.min(legacy, 2) or REFUSED
