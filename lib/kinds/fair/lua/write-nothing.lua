-- Changes nothing, for a script that has not written yet: see script-parts.ts.
--
-- Needs  queue
redis.call('ZREM', queue, '')
