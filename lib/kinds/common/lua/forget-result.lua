-- Forgets a result. Where the lock is held, leaves a mark, so that the task that runs stores none.
--
-- KEYS[1]  the result
-- KEYS[2]  the mark
-- KEYS[3]  the lock
-- ARGV[1]  the new mark
-- ARGV[2]  ms for which the mark stays
-- Returns  how many results there were
if redis.call('PTTL', KEYS[3]) ~= -2 then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2]) end
return redis.call('DEL', KEYS[1])
