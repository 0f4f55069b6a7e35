-- Notifies the first in the queue of a forced unlock, and all that listen. Those that are notified poll.
--
-- KEYS[2]  the queue
-- ARGV[4]  PUBLISH or SPUBLISH
-- ARGV[5]  the channel of the grants, without its process
-- ARGV[6]  and more: what publish of spring takes
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first then redis.pcall(ARGV[4], ARGV[5] .. ':' .. string.match(first, '^(.*):'), KEYS[1]) end
-- @include spring/publish FIRST_WORD=ARGV[6] SECOND_WORD=ARGV[7]
