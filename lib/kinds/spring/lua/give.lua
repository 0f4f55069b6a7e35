-- Gives the lock to the owner value `to`, for left ms.
--
-- Needs  lock; to; left
-- Out of memory: see script-parts.ts.
redis.call('PEXPIRE', lock, left)
redis.call('SET', lock, to, 'PX', left)
