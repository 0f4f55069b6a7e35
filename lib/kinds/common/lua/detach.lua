-- Gives a lock another owner value, under which it can be adopted.
--
-- KEYS[1]  the lock
-- ARGV[1]  the owner
-- ARGV[2]  the other value
-- ARGV[3]  ttl in ms
-- Returns  1: the lock has the other value, and lives for the ttl at least; 0: no key; -1: it is another owner's
-- @include common/examine-to-give
left = math.max(redis.call('PTTL', lock), tonumber(left))
if not isGiven then
  -- @include THIS_KIND/give
end
return 1
