-- Publishes a message. Sets heard: the listeners, REFUSED, or UNCOUNTED. Servers before 7 have no SPUBLISH: then, on a
-- cluster, PUBLISH does not count the listeners on other nodes. pcall: else a user without rights on channels could not
-- release.
--
-- COMMAND  PUBLISH or SPUBLISH
-- CHANNEL  the channel
-- MESSAGE  the message
local heard = redis.pcall(COMMAND, CHANNEL, 'MESSAGE')
if type(heard) == 'table' and COMMAND == 'SPUBLISH' then
  heard = redis.pcall('PUBLISH', CHANNEL, 'MESSAGE')
  if type(heard) == 'number' then heard = UNCOUNTED end
end
if type(heard) == 'table' then heard = REFUSED end
