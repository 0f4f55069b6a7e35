-- Takes the ticket of an owner that does not have the lock out of the queue. Returns where an earlier run, whose reply was
-- lost, has handed the lock over, or kept it. Sets granted, token and left, if next has the lock.
--
-- Needs  owner; holder; next, ttl; what functions.lua sets

-- A holder's ticket is in the queue only if a late attempt has entered it.
redis.call('ZREM', queue, ticketOf(owner))
granted, token, left = grantedBefore(next, holder, ttl)
local position = next and redis.call('ZSCORE', queue, next)
local kept = type(holder) == 'string' and string.match(holder, '^KEPT_PREFIX(.*)$')
if granted or position or kept and (kept == owner or ticketOf(kept) == owner) then
  return { left or lifeLeft(), position or '', granted or '', token or '' }
end
