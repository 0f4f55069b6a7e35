-- Writes the ticket of an owner that has not entered, if it queues. Sets refusal: the end of the reply.
--
-- Needs  own; queues; keptFor; entersFor; hadWriter; channel; what lock.lua and queue.lua set
local arrived = digits(own.arrival)
if queues then
  -- Without an end of its lease it is not let in.
  local leaseEnd = kind ~= 'semaphore' and entersFor > 0 and own.leaseEnd or '0'
  local lasts = digits(now + keptFor) .. ':' .. digits(now + entersFor) .. ':' .. leaseEnd
  redis.call('HSET', waiters, member, arrived .. ':' .. lasts)
  -- The readers of other processes let nobody in from now on.
  if kind == 'write' and not hadWriter and holders > 0 then redis.pcall('PUBLISH', channel, 'wanted') end
end
local first, firstEnd = firstLease()
local ends = firstEnd or queue[1] ~= own and queue[1].seenUntil or now + 1
local holder = first and string.match(first, ':(.*)$') or ''
-- @include common/readable READ_VALUE=holder
refusal = { math.max(0, ends - now), holder, arrived, permits, own.leaseEnd }
