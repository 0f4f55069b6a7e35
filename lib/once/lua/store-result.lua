-- Stores the result of a task, while its lock is held. The mark of a `forget` that came after the task began stays where it
-- is: a second try, after an answer that was lost, has to find it too. Any other is of no more use.
--
-- KEYS[1]  the result
-- KEYS[2]  the mark of the last `forget` that found the lock held
-- ARGV[1]  its text
-- ARGV[2]  ms for which it is stored
-- ARGV[3]  the mark when the task began, or ''
-- Returns  1; 0: the result was forgotten since then, and is not stored
local mark = redis.call('GET', KEYS[2])
if mark and mark ~= ARGV[3] then return 0 end
if mark then redis.call('DEL', KEYS[2]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- pcall: else a user without rights on channels could store nothing.
redis.pcall('PUBLISH', KEYS[1], '')
return 1
