-- Reads what mint needs, where there is a fence. Before anything is written.
--
-- IS_FENCING  whether there is one
local last = IS_FENCING and redis.call('GET', KEYS[2])
local time = IS_FENCING and redis.call('TIME')
