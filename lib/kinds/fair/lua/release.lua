-- Releases a lock and hands it over to the first ticket in the queue; takes a ticket out of the queue, with any grant of
-- it. The lock goes to nobody while its minHold has not ended, and when it is left to pollers: if the last pause is long ago, a
-- release is published to the waiters of spin and pub-sub under the same name, and of Spring.
--
-- With a next caller of the process it is HAND_OVER: the lock goes to that one or to one of the queue, to the earliest of them
-- that can be reached. Where it does not get the lock, the next caller has a position in the queue afterwards.
--
-- KEYS[1]  the lock
-- KEYS[2]  the queue
-- KEYS[3]  the tickets
-- KEYS[4]  the fence, with fencing
-- ARGV[1]  the owner, or a ticket
-- ARGV[2]  the command that deletes
-- ARGV[3]  a text of 1, 7 or 12 words:
--            publish   PUBLISH or SPUBLISH
--            how       how the process is notified (NotifiedBy)
--            life      ms until it is taken for dead
--            age       microseconds since the call of the next caller, or 0
--            ttl       ms of the next caller, or 0
--            most      the most tokens that are of use, or 0
--            next      the ticket of the next caller, or ''
--            pause     ms of a pause
--            interval  ms from one pause to the next
--            keepFor   ms left of the minHold by the local clock, or 0
--            minHold   of the acquisition in ms, or 0
--            keyTtl    the ttl of the acquisition in ms, or 0
-- ARGV[4]  and more: what publish of spring takes
-- Returns  1 or 2: the lock was the owner's, and there were no waiters; 2: deleted by DEL. Of HAND_OVER, 1: the lock is the next
--          ticket's, and there were no others; 2: it is before all others; with a fence in both cases tokens (see
--          mint-block.lua), several only when there were no others. Else a table, as scripts.ts says
-- @include fair/keys
local owner = ARGV[1]
-- A key of another type is the key of another owner. No other error says whose it is.
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' and not string.find(holder.err, 'WRONG_TYPE', 1, true) then return holder end
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
local publish, how, life, age, ttl, most, next, more = ARGV[3], 'none', 0, 0, 0, 1, '', ''
if string.find(publish, ' ', 1, true) then
  local words = '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S*)(.*)$'
  publish, how, life, age, ttl, most, next, more = string.match(publish, words)
end
if next == '' then next = nil end
local first, firstAt
if isOwners then first, firstAt = unpack(redis.call('ZRANGE', queue, '0', '0', 'WITHSCORES')) end
firstAt = tonumber(firstAt)
-- Nobody waits in another process. Those that waited are forgotten where nobody waits here either.
if isOwners and not first and more == '' and not next then
  -- @include fair/free FREED_KEYS="lock, tickets"
  return deleted
end
-- @include fair/now
local mine = string.match(owner, '^(.*):')
local noted, itsNoted
if first then noted, itsNoted = unpack(redis.call('HMGET', tickets, mine, string.match(first, '^(.*):'))) end
if isOwners and next and more == '' then
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
end
-- @include fair/functions
local score
if isOwners and next then
  score = positionOf(age)
  if type(redis.pcall('ZADD', queue, score, next)) == 'table' then
    -- Out of memory: see script-parts.ts.
    -- @include fair/write-nothing
    redis.call('ZADD', queue, score, next)
  end
  note(mine, noted, how, ttl, life, not first)
  if first and tonumber(score) <= firstAt then first, itsNoted = nil, nil end
end
local granted, token, left
if not isOwners then
  -- A holder's ticket is in the queue only if a late attempt has entered it.
  redis.call('ZREM', queue, ticketOf(owner))
  granted, token, left = grantedBefore(next, holder, ttl)
  local position = next and redis.call('ZSCORE', queue, next)
  local kept = type(holder) == 'string' and string.match(holder, '^KEPT_PREFIX(.*)$')
  if granted or position or kept and (kept == owner or ticketOf(kept) == owner) then
    -- An earlier run, whose reply was lost, has handed the lock over, or kept it.
    return { left or lifeLeft(), position or '', granted or '', token or '' }
  end
end
local found = isOwners and 1 or holder and -1 or 0
local pause, interval, keepFor, minHold, keyTtl = 0, 0, 0, 0, 0
if more ~= '' then
  pause, interval, keepFor, minHold, keyTtl = string.match(more, '^ (%S+) (%S+) (%S+) (%S+) (%S+)$')
  pause, keepFor = tonumber(pause), tonumber(keepFor)
end
local pauseIn = pause > 0 and math.max(0, math.ceil(interval - pause - sincePause()))
if isOwners and (keepFor > 0 or pauseIn == 0) then
  if keepFor > 0 then
    -- The key of a grant by hand-over may not have its full ttl yet. Its owner value says its age.
    local grantedAt = string.match(holder, '@(%d+)$')
    -- @include common/left-to-keep KEEP_FOR=keepFor MIN_HOLD=minHold GRANT_AGE="grantedAt and (now - grantedAt) / 1000 or remaining >= 0 and keyTtl - remaining"
    redis.call('PEXPIRE', lock, left)
    redis.call('SET', lock, 'KEPT_PREFIX' .. holder, 'PX', left)
    -- @include spring/publish FIRST_WORD=ARGV[4] SECOND_WORD=ARGV[5]
  else
    -- @include fair/free FREED_KEYS=lock
    found = deleted
    redis.call('HSET', tickets, 'pause', digits(now + pause * 1000))
    redis.call('PEXPIRE', tickets, math.max(redis.call('PTTL', tickets), math.ceil(pause)))
  end
  -- Its process polls, and so learns when the key or the pause ends.
  first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then notify(processOf(first), lock) end
  return { lifeLeft(), score or '', '', '', false, found, refused and 1 or 0, 0, pauseIn or nil }
end
if isOwners or (not holder and pauseLeft() == 0) then
  granted, token, left = handOver(mine, isOwners and next, ttl, first, itsNoted)
  if not granted and redis.call('ZCARD', queue) == 0 then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  -- @include fair/free FREED_KEYS=lock
  found = deleted
end
-- Mostly another process has it now.
if granted == '' and found == 1 and not refused and not pauseIn then return { left, score or '' } end
return {
  left or lifeLeft(), score or '', granted or '', token or '',
  false, found, refused and 1 or 0, 0, pauseIn and math.max(1, pauseIn) or nil
}
