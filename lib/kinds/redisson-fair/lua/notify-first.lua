-- Notifies the first waiter on its own channel, if there is one. Sets listeners: the connections that got the message.
--
-- KEYS[2]  the queue
-- ARGV[4]  PUBLISH or SPUBLISH
-- ARGV[5]  the channel of the lock
local first, listeners = redis.call('LINDEX', KEYS[2], 0), 0
if first then
  -- @include redisson/publish-on PUBLISH_COMMAND=ARGV[4] ON_CHANNEL="ARGV[5] .. ':' .. first" MESSAGE_TEXT=MESSAGE_UNLOCKED
  listeners = heard
end
