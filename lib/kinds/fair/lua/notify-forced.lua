-- Notifies the first in the queue of a forced unlock, and all that listen. Those that are notified poll.
--
-- KEYS[2]  the queue
-- Needs  words: the arguments after that one are PUBLISH or SPUBLISH; the channel of the grants, without its process; and what
-- publish of spring takes
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first then redis.pcall(ARGV[words + 1], ARGV[words + 2] .. ':' .. string.match(first, '^(.*):'), KEYS[1]) end
-- @include spring/publish FIRST_WORD="ARGV[words + 3]" SECOND_WORD="ARGV[words + 4]"
