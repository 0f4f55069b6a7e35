-- Publishes that a lock is free, if it is. Changes nothing.
--
-- KEYS[1]  the lock
-- ARGV[1]  and more: the notification
-- Returns  the listeners
if redis.call('PTTL', KEYS[1]) ~= -2 then return 0 end
-- @include THIS_KIND/publish FIRST_WORD=ARGV[1] SECOND_WORD=ARGV[2]
return heard
