-- Renews a lock. Never shortens its life.
--
-- KEYS[1]  the lock
-- ARGV[1]  the owner
-- ARGV[2]  ttl in ms
-- Returns  1: the key has the ttl; { life in ms }: it lives longer; 0: there is no key; -1: it is another owner's
-- @include common/examine
-- @include common/return-unless-held
local ttl, life = tonumber(ARGV[2]), redis.call('PTTL', lock)
if life < ttl then
  redis.call('PEXPIRE', lock, ttl)
  return 1
end
return { life }
