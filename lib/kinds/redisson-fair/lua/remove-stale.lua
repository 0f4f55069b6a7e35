-- Removes waiters that have had the first position for too long: they are taken for dead. Sets head. Without one, removes
-- what is left of the timeouts.
local head = redis.call('LINDEX', queue, 0)
while head do
  local timeout = redis.call('ZSCORE', timeouts, head)
  if timeout and tonumber(timeout) > now then break end
  redis.call('ZREM', timeouts, head)
  redis.call('LPOP', queue)
  head = redis.call('LINDEX', queue, 0)
end
if not head then
  -- @include common/delete DELETE_COMMAND='UNLINK' DELETED_KEYS=timeouts
end
