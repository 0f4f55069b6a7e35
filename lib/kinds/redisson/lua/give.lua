-- Gives the lock to the owner value `to`, for left ms. The new field comes before the old one goes: a hash without fields
-- is deleted.
--
-- Needs  lock; owner; to; left
-- Changes nothing. Out of memory: see script-parts.ts.
redis.call('HDEL', lock, '')
redis.call('HSET', lock, to, 1)
redis.call('HDEL', lock, owner)
-- Last: see script-parts.ts.
redis.call('PEXPIRE', lock, left)
