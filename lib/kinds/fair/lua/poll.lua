-- Prolongs the life of a ticket that is in the queue, and hands a free lock over. It never creates a ticket: a poll that
-- is executed late must not leave one. A process that does not listen as it says counts as one that polls. So does one that
-- finds a grant long after the message about it.
--
-- KEYS[1]  the lock
-- KEYS[2]  the queue
-- KEYS[3]  the tickets
-- KEYS[4]  the fence, with fencing
-- ARGV[1]  the ticket
-- ARGV[2]  as one text: PUBLISH or SPUBLISH, how the process is notified, ms until it is taken for dead
-- Returns  a table, as scripts.ts says
-- @include fair/keys
local ticket = ARGV[1]
local publish, how, life = string.match(ARGV[2], '^(%S+) (%S+) (%S+)$')
-- @include fair/now
-- @include fair/functions
local holder = redis.call('GET', lock)
local process, its = processOf(ticket), holder and processOf(holder)
local noted, itsNoted = unpack(redis.call('HMGET', tickets, process, its or ''))
-- Eviction, or a command by hand, may have taken one of the two keys.
local _, ttl, notedHow = presenceIn(noted)
local score = ttl and redis.call('ZSCORE', queue, ticket)
-- The server may have lost a connection that the process takes for open.
local isUnreachable = how == 'message' and notify(process, 'poll') == 0 and not refused
if score then
  -- @include fair/write-nothing
  note(process, noted, isUnreachable and 'poll' or how, ttl, life)
end
local owner, token, left
if not holder then
  if pauseLeft() == 0 then owner, token, left = handOver(process) end
elseif its == process then
  owner, token = holder, tokenOf(holder)
  -- A message was published about it, and counted. Else each grant would lie there until such a poll.
  local grantedAt = ticketOf(holder) == ticket and string.match(holder, '@(%d+)$')
  local isLate = grantedAt and now - grantedAt > MESSAGE_ARRIVES_WITHIN
  isUnreachable = isUnreachable or isLate and how == 'message' and notedHow == how
end
local isOutsiders = outsider(holder, process, itsNoted)
-- @include common/readable READ_VALUE=holder
return {
  left or lifeLeft(), score or '', owner or isOutsiders, token or '',
  holder, 1, 0, isUnreachable and 1 or 0
}
