-- Sets left: ms for which the key is kept from now on, as text.
--
-- What is left of the key's ttl shows how long ago the key was given it, by the server's clock. That is more exact than
-- the local clock, since no time passes on the way. A renewal makes the key look younger: this estimate is too long
-- then. The local clock misses a suspension of the machine, and the time in which a grant was not read: its estimate is
-- too long then. Neither is ever too short, so the smaller one is used.
--
-- KEEP_FOR  ms left of the minHold by the local clock
-- MIN_HOLD  ms; the minHold of the acquisition
-- GRANT_AGE       finds how many ms ago the lock was granted, from the remaining ms of its key; nil or false: not known
local left, remaining = tonumber(KEEP_FOR), redis.call('PTTL', KEYS[1])
local age = GRANT_AGE
if age then left = math.min(left, MIN_HOLD - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))
