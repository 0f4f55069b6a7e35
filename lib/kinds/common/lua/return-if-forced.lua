-- Returns what an earlier run of the same forced unlock has returned, if it has done it: a client may repeat a command whose
-- reply was lost, and the next owner may have the lock by then. Sets mark, which note-forced.lua leaves. Without a second key there is none.
--
-- KEYS     the last one: the mark
-- ARGV[2]  ms for which the mark is kept, or '': there is none
local mark = ARGV[2] ~= '' and KEYS[#KEYS]
local toldBefore = mark and redis.call('GET', mark)
if toldBefore then return { 1, tonumber(toldBefore) } end
