-- Gives the lock to the next caller of the process, and returns, if nobody waits elsewhere or it called before all of them.
-- The queue stays as it is.
--
-- Needs  next, age, ttl, most; first and firstAt, of the queue; noted, of this process; now; what keys.lua sets

-- It called before all that wait, and they know its process: without a ticket it may be a poller.
local isFirst = first and now - age < firstAt and firstAt <= now + SET_BACK
if not first or isFirst and noted then
  if redis.pcall('SET', lock, next, 'PX', ttl).err then
    -- Out of memory: see script-parts.ts.
    redis.call('PEXPIRE', lock, ttl)
    redis.call('SET', lock, next, 'PX', ttl)
  end
  if not fence then return first and 2 or 1 end
  local last = redis.call('GET', fence)
  if first then most = 1 end
  -- @include common/mint-block FENCE_KEY=fence MOST_TOKENS=most
end
