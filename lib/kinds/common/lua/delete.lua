-- Deletes keys. Sets deleted: 1, or 2 where the command was refused and DEL did it.
--
-- COMMAND  the command that deletes
-- DELETED  the keys
local deleted = 1
if type(redis.pcall(COMMAND, DELETED)) == 'table' then
  redis.call('DEL', DELETED)
  deleted = 2
end
