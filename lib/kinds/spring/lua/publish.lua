-- Publishes the lock's name on the lock's channel, and where SECOND_WORD is given also on that of the registry. Who listens
-- there mostly waits for another lock: this process and one other count. Sets heard: the listeners, or LISTENERS_REFUSED.
-- pcall: else a user without rights on channels could not release.
--
-- FIRST_WORD   the channel of the registry
-- SECOND_WORD  any text: the name goes there too
local heard = redis.pcall('PUBLISH', FIRST_WORD .. ':' .. KEYS[1], KEYS[1])
local legacy = true and SECOND_WORD and redis.pcall('PUBLISH', FIRST_WORD, KEYS[1]) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + math.min(legacy, 2) or LISTENERS_REFUSED
