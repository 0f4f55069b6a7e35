-- Enters the ticket of the next caller into the queue, before the lock is released. Sets score, its position. Where that is
-- the first one, first and itsNoted are not known any more.
--
-- Needs  mine, the process; next, age, how, life, ttl; first, firstAt, noted, itsNoted; what functions.lua sets
score = positionOf(age)
if type(redis.pcall('ZADD', queue, score, next)) == 'table' then
  -- Out of memory: see script-parts.ts.
  -- @include fair/write-nothing
  redis.call('ZADD', queue, score, next)
end
note(mine, noted, how, ttl, life, not first)
if first and tonumber(score) <= firstAt then first, itsNoted = nil, nil end
