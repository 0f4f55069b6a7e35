-- Returns the next fencing tokens, or 1 without fencing. Does what INCR does, once for each caller.
--
-- Needs  most: the most tokens that are of use; nil without fencing
if not most then return 1 end
local first = redis.call('INCRBY', KEYS[2], most) - most + 1
return string.format(most > 1 and '%.0f %.0f' or '%.0f', first, most)
