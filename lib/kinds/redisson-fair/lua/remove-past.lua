-- Removes the positions of waiters of the owner's process that came before it. A process has one position, and its owner
-- values are numbered: the earlier ones have ended, though a server that has taken over may not know it. Sets head.
--
-- OWN_POSITION  what happens with the position of the owner itself
local process, number = string.match(owner, '^(.*):(%d+)$')
local removed = 0
for _, other in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  local its, itsNumber = string.match(other, '^(.*):(%d+)$')
  local isPast = process and its == process and tonumber(itsNumber) < tonumber(number)
  -- @include redisson-fair/OWN_POSITION
  if isPast then
    redis.call('ZREM', timeouts, other)
    redis.call('LREM', queue, 0, other)
    removed = removed + 1
  elseif removed > 0 then
    -- Those behind wait for one less.
    redis.call('ZINCRBY', timeouts, -wait * removed, other)
  end
end
head = redis.call('LINDEX', queue, 0)
