-- Publishes that the lock is left to pollers: on the lock's channel alone, since readers of that of the registry would not
-- know the lock. Sets heard, as publish does.
--
-- FIRST_WORD, SECOND_WORD  as of publish
local heard = redis.pcall('PUBLISH', FIRST_WORD .. ':' .. KEYS[1], 'MESSAGE_LEFT')
local legacy = false and SECOND_WORD and redis.pcall('PUBLISH', FIRST_WORD, KEYS[1]) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + math.min(legacy, 2) or LISTENERS_REFUSED
