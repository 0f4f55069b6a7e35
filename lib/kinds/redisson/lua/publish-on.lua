-- Publishes a message. Sets heard: the listeners, LISTENERS_REFUSED, or LISTENERS_UNCOUNTED. Servers before 7 have no
-- SPUBLISH: then, on a cluster, PUBLISH does not count the listeners on other nodes. pcall: else a user without rights on
-- channels could not release.
--
-- PUBLISH_COMMAND  PUBLISH or SPUBLISH
-- ON_CHANNEL  the channel
-- MESSAGE_TEXT  the message
local heard = redis.pcall(PUBLISH_COMMAND, ON_CHANNEL, 'MESSAGE_TEXT')
if type(heard) == 'table' and PUBLISH_COMMAND == 'SPUBLISH' then
  heard = redis.pcall('PUBLISH', ON_CHANNEL, 'MESSAGE_TEXT')
  if type(heard) == 'number' then heard = LISTENERS_UNCOUNTED end
end
if type(heard) == 'table' then heard = LISTENERS_REFUSED end
