-- Acquires a lock, or takes a position in its queue.
--
-- KEYS[1]  the lock
-- KEYS[2]  the queue
-- KEYS[3]  the tickets
-- KEYS[4]  the fence, with fencing
-- ARGV[1]  the ticket
-- ARGV[2]  ttl in ms
-- ARGV[3]  as one text: PUBLISH or SPUBLISH, how the ticket's process is notified (NotifiedBy), ms until it is taken for dead,
--          microseconds since the caller's call, the ticket's first score or ''
-- Returns  1, or with a fence the token as text: the lock was free, and there were no waiters; else a table, as scripts.ts
--          says
-- @include fair/keys
local ticket, ttl = ARGV[1], ARGV[2]
local hasWaiters = redis.call('EXISTS', queue, tickets) > 0
-- Nearly always the lock is free.
local set = not hasWaiters and redis.pcall('SET', lock, ticket, 'NX', 'PX', ttl)
if set and not set.err then
  if not fence then return 1 end
  local time, last = redis.call('TIME'), redis.call('GET', fence)
  -- @include common/mint FENCE_KEY=fence
end
local holder = redis.call('GET', lock)
-- The server refused to write.
if set and not holder then return set end
local publish, how, life, age, score = string.match(ARGV[3], '^(%S+) (%S+) (%S+) (%S+) (%S*)$')
-- @include fair/now
-- @include fair/functions
local process, its = processOf(ticket), holder and processOf(holder)
local noted, itsNoted = unpack(redis.call('HMGET', tickets, process, its or ''))
local owner, token, left = grantedBefore(ticket, holder, ttl)
if how == 'none' and not owner then
  -- A caller that does not wait is refused only while the lock is held, so it ignores a pause.
  if not holder then
    owner, token, left = handOver(process)
    if not owner then
      -- No waiter can be reached.
      -- @include fair/write-nothing
      redis.call('SET', lock, ticket, 'PX', ttl)
      owner, token, left = ticket, mint(), tonumber(ttl)
    end
  end
elseif not owner then
  local position, last = positionOf(age)
  -- The removal is a write too: see WRITE_NOTHING.
  if score == '' then score = position else redis.call('ZREM', queue, ticket) end
  -- Entered by an earlier attempt, it keeps its position.
  if redis.call('ZADD', queue, 'NX', score, ticket) == 0 then score = redis.call('ZSCORE', queue, ticket) end
  note(process, noted, how, ttl, life, not last or last == ticket)
  if not holder then
    if pauseLeft() == 0 then owner, token, left = handOver(process, ticket, ttl) end
  elseif its and its ~= process and (not last or last == ticket or processOf(last) == its) then
    -- It passes the lock on among its own callers until it hears of others: of the first one that waits.
    notify(its, 'MESSAGE_WANTED')
  end
end
local isOutsiders = outsider(holder, process, itsNoted)
-- @include common/readable READ_VALUE=holder
return { left or lifeLeft(), score, owner or isOutsiders, token or '', holder }
