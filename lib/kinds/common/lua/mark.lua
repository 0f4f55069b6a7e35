-- Leaves the mark that a process waits for a lock. A process that is as quick as others is counted as well: its mark does
-- not replace that of one which needs a head start.
--
-- KEYS[1]  the mark
-- ARGV[1]  the waiter
-- ARGV[2]  its head start in ms, or 0
-- ARGV[3]  ms for which the mark is kept
-- Returns  1; 0: the mark is that of another process
local waiter = string.match(redis.call('GET', KEYS[1]) or '', '^(.*) [1-9]%d*$')
if ARGV[2] == '0' and waiter and waiter ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1
