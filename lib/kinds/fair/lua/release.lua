-- Releases a lock and hands it over to the first ticket in the queue; takes a ticket out of the queue, with any grant of
-- it. The lock goes to nobody while its minHold has not ended, and when it is left to pollers: if the last pause is long ago, a
-- release is published to the waiters of spin and pub-sub under the same name, and of Spring.
--
-- With a next caller of the process it is HAND_OVER: the lock goes to that one or to one of the queue, to the earliest of them
-- that can be reached. Where it does not get the lock, the next caller has a position in the queue afterwards.
--
-- KEYS[1]  lock
-- KEYS[2]  queue
-- KEYS[3]  tickets
-- KEYS[4]  fence, with fencing
-- ARGV[1]  owner: an owner value, or a ticket
-- ARGV[2]  the command that deletes
-- ARGV[3]  a text of 1, 7 or 12 words: see release-words.lua
-- ARGV[4]  and more: what publish of spring takes
-- Returns  of RELEASE 1 or 2: the lock was the owner's, and there were no waiters; 2: deleted by DEL
--          of HAND_OVER 1: the lock is the next ticket's, and there were no others; 2: it is before all others; with a fence in
--          both cases tokens (see mint-block.lua), several only when there were no others
--          else a table, as scripts.ts says

-- @include fair/keys
-- @include fair/release-words
local owner = ARGV[1]
-- A key of another type is the key of another owner. No other error says whose it is.
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' and not string.find(holder.err, 'WRONG_TYPE', 1, true) then return holder end
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
local first, firstAt
if isOwners then first, firstAt = unpack(redis.call('ZRANGE', queue, '0', '0', 'WITHSCORES')) end
firstAt = tonumber(firstAt)

-- Nobody waits in another process. Those that waited are forgotten where nobody waits here either.
if isOwners and not first and not withholds and not next then
  -- @include fair/free FREED_KEYS="lock, tickets"
  return deleted
end

-- @include fair/now
local mine = string.match(owner, '^(.*):')
local noted, itsNoted
if first then noted, itsNoted = unpack(redis.call('HMGET', tickets, mine, string.match(first, '^(.*):'))) end
if isOwners and next and not withholds then
  -- @include fair/pass-on
end

-- @include fair/functions
local score, granted, token, left
if isOwners and next then
  -- @include fair/queue-next
elseif not isOwners then
  -- @include fair/leave-queue
end
local found = isOwners and 1 or holder and -1 or 0
local pauseIn = pause > 0 and math.max(0, math.ceil(interval - pause - sincePause()))
if isOwners and (keepFor > 0 or pauseIn == 0) then
  if keepFor > 0 then
    -- @include fair/keep
  else
    -- @include fair/pause
  end
  -- The first waiter's process polls, and so learns when the key or the pause ends.
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
