-- Makes the lock that of owner for ttl ms.
--
-- Needs  lock; owner; ttl
redis.call('HSET', lock, owner, 1)
redis.call('PEXPIRE', lock, ttl)
