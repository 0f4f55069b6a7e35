-- The lock is the owner's already: a reply was lost. A late repetition must not shorten a renewed life.
--
-- Needs  lock; ttl
if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
