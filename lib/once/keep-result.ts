/**
 * Run by `lease.eval`, so only while the lock is held.
 *
 * KEYS: the result
 * ARGV: its text, ms for which it is kept
 */
export const KEEP_RESULT = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
-- pcall: else a user without rights on channels could keep nothing.
redis.pcall('PUBLISH', KEYS[1], '')
return 1`;
