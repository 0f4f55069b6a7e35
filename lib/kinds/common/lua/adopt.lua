-- Gives a lock that was detached to the process that adopts it: an acquisition. The ttl counts from now on. A late
-- repetition does not shorten a renewed life.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence, with fencing
-- ARGV[1]  the owner value under which it was detached
-- ARGV[2]  the new owner
-- ARGV[3]  ttl in ms
-- Returns  1, or with a fence the next token: the lock is the new owner's; 0: no key; -1: it is another owner's
-- @include common/examine-to-give
local most = KEYS[2] and 1
-- @include THIS_KIND/before-tokens
if isGiven then
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), left))
else
  -- @include THIS_KIND/give
end
-- @include THIS_KIND/tokens
