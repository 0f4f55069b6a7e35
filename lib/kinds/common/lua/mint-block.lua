-- Mints tokens for leases that follow each other: as mint for the first one, and each of the others is one higher. Returns
-- the first, and after a space how many they are if there are several.
--
-- Only the holder of a lock mints, so nobody else has one of them. The counter is the last one. Where it is ahead of the
-- server's clock already, there are fewer.
--
-- Needs  last, the value of the counter; time, the reply of TIME
-- FENCE_KEY     the key of the counter
-- MOST_AHEAD    microseconds by which the counter may be ahead of the server's clock
-- MOST_TOKENS   the most tokens that are of use
local now = time[1] * 1000000 + time[2]
local first = math.max((tonumber(last) or 0) + 1, now)
local count = math.max(1, math.min(MOST_TOKENS, now + MOST_AHEAD - first))
redis.call('SET', FENCE_KEY, string.format('%.0f', first + count - 1), 'PX', FENCE_TTL)
return string.format(count > 1 and '%.0f %.0f' or '%.0f', first, count)
