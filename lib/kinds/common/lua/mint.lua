-- Mints a fencing token and returns it: max(last + 1, the server's time in microseconds). It rises with every grant, also
-- after the counter was lost. An attempt that is repeated mints none: it gets the token of its grant, where the counter is
-- still there. Lua prints at most 14 digits by itself, hence string.format.
--
-- Needs  last, the value of the counter; time, the reply of TIME
-- FENCE_KEY  the key of the counter
local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', FENCE_KEY, token, 'PX', FENCE_TTL)
return token
