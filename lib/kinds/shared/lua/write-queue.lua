-- Deletes the tickets where there are none but one that does not queue. Else writes the number of permits, if it is new, and
-- makes them last as long as the ticket of member.
--
-- Needs  own; queues; hadQueue; isGiven; keptFor; what lock.lua and queue.lua set
if #queue == 0 or #queue == 1 and queue[1] == own and not queues then
  if hadQueue then redis.call('DEL', waiters) end
else
  if kind == 'semaphore' and isGiven then
    redis.call('HSET', waiters, 'permits', digits(permits) .. ':' .. digits(givenAt))
  end
  -- Last: see script-parts.ts.
  if redis.call('PTTL', waiters) < keptFor then redis.call('PEXPIRE', waiters, keptFor) end
end
