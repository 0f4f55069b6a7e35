-- Takes a lock from the owner that is named, and gives it to another one: an acquisition. Tells the process of the owner, and
-- takes nothing where nobody hears it. A repetition finds that it is done, or an owner that it does not name.
--
-- KEYS[1]  the lock
-- KEYS[2]  the fence, with fencing
-- ARGV[1]  the owner that has it
-- ARGV[2]  the new owner
-- ARGV[3]  ttl in ms
-- ARGV[4]  the inbox of the process, or '': nobody has to hear it
-- ARGV[5]  the message
-- ARGV[6]  the least number of those that have to hear it
-- Returns  1, or with a fence the next token: the lock is the new owner's; 0: no key; -1: it is another owner's
--          -2: nobody heard it, and nothing was done
-- @include common/examine-to-give
local most = KEYS[2] and 1
-- @include THIS_KIND/before-tokens
if isGiven then
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), left))
else
  -- Before it is taken: who hears it asks the server, which answers when this is done. pcall: it may be refused.
  local heard = ARGV[4] ~= '' and redis.pcall('PUBLISH', ARGV[4], ARGV[5])
  if (tonumber(heard) or 0) < tonumber(ARGV[6]) then return -2 end
  -- @include THIS_KIND/give
end
-- @include THIS_KIND/tokens
