-- Notifies the first waiter on its own channel, if there is one. Sets listeners: the connections that got the message.
--
-- KEYS[2]  the queue
-- FIRST_WORD   PUBLISH or SPUBLISH
-- SECOND_WORD  the channel of the lock
local first, listeners = redis.call('LINDEX', KEYS[2], 0), 0
if first then
  -- @include redisson/publish-on PUBLISH_COMMAND=FIRST_WORD ON_CHANNEL="SECOND_WORD .. ':' .. first" MESSAGE_TEXT=MESSAGE_UNLOCKED
  listeners = heard
end
