-- Deletes keys. Sets deleted: 1, or 2 where the command was refused and DEL did it.
--
-- DELETE_COMMAND  the command that deletes
-- DELETED_KEYS  the keys
local deleted = 1
if type(redis.pcall(DELETE_COMMAND, DELETED_KEYS)) == 'table' then
  redis.call('DEL', DELETED_KEYS)
  deleted = 2
end
