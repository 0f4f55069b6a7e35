/**
 * Run by `lease.eval`, so only while the lock is held. The mark of a `forget` that came after the task began stays where it
 * is: a second try, after an answer that was lost, has to find it too. Any other is of no more use.
 *
 * KEYS: the result, the mark of the last `forget` that found the lock held
 * ARGV: its text, ms for which it is kept, the mark when the task began, or ''
 * Returns 1, or 0 when the result was forgotten since then, and is not kept.
 */
export const KEEP_RESULT = `
local mark = redis.call('GET', KEYS[2])
if mark and mark ~= ARGV[3] then return 0 end
if mark then redis.call('DEL', KEYS[2]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- pcall: else a user without rights on channels could keep nothing.
redis.pcall('PUBLISH', KEYS[1], '')
return 1`;
