import { KEPT } from '../../api/owner-name';
import { LockScript } from '../../redis/script';
import { IN_LUA } from '../../redis/server-errors';
import { inspectionScripts } from '../common/inspector';
import { isFound, isGrant } from '../common/replies';
import { DIGITS, deleteBy, leftToKeep, mint, mintBlock, PROLONG } from '../common/script-parts';
import { LONGEST_PAUSE } from '../common/shared-with-pollers';
import { publish, SPRING_SCRIPTS, STRING } from '../spring/kind';

/*
 * The fair lock in Redis, all keys in one hash slot:
 *
 *   lock     string   the owner, as for spin and pub-sub: under one name the types exclude each other
 *   queue    zset     ticket -> score, when its caller called; of each process the first caller's ticket
 *   tickets  hash     <process>  -> "<end of its life, epoch ms>:<ttl in ms of its ticket>:<how it is notified>"
 *                     pause      -> when the last pause ends, in which a free lock is left to pollers
 *   fence    string   the last fencing token
 *
 * A ticket is "<process>:<number>". A caller that gets a free lock by the script that was sent for it, or as the next
 * caller of a release of its own process, has it under its ticket. Every grant from the queue has an owner value of its
 * own, "<ticket>@<server time of the grant>". So whatever is sent later for an earlier grant finds nothing.
 *
 * KEYS of every script: lock, queue, tickets [, fence]. Each argument costs the client and the server time: so several
 * are one text, with spaces between them, and on the busy path constants are text, since Redis would print the numbers.
 * Times of the server are in microseconds. Every script is idempotent.
 *
 * A table that they return is what `QueueReply` says, in this order: life, score, owner, token, holder, found,
 * refused, unreachable, pauseIn. What does not apply is '' or 0, or missing at the end.
 */

/** ms; a grant by hand-over lasts this long until it is renewed; never longer than the ttl that was asked for. */
export const CLAIM_WINDOW = 1_000;

/** Microseconds in which the message about a grant arrives, over a connection on which messages arrive at all. */
const MESSAGE_ARRIVES_WITHIN = 250_000;

/** In place of an owner: the holder may be of another lock type, or of a library that publishes no releases. */
export const OUTSIDER = 'outsider';

/** A message to the process that holds the lock: another process waits for it. */
export const WANTED = 'wanted';

/** How a process learns of a grant: by a message, or it polls. `none`: the caller does not wait. */
export type NotifiedBy = 'message' | 'poll' | 'none';

const KEYS_BY_NAME = `
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]`;

/** Changes nothing, for a script that has not written yet: see script-parts.ts. */
const WRITE_NOTHING = "redis.call('ZREM', queue, '')";

/** Microseconds. */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]`;

/** Microseconds; a score that is further ahead shows that the clock was set back. Then calls cannot be compared. */
const SET_BACK = 1_000_000;

/** ms by which a process is noted to live longer than it says, so that not every script has to write it. */
const NOTED_LONGER = 1_000;

/**
 * What the scripts do with the queue. Inserted after the paths on which nobody else is to be granted the lock, since Lua
 * creates functions at every run. Needs `now` and `publish`: PUBLISH or SPUBLISH. Sets `refused` if the server refuses it.
 */
const FUNCTIONS = `
local refused = false
${DIGITS}

local function processOf(owner) return string.match(owner, '^(.*):') end
local function ticketOf(owner) return string.match(owner, '^(.*)@') or owner end

-- Returns how many connections of the process got the message. One at a replica gets what is published, and is not
-- counted: a grant must not reach a process that is passed over. So it is published only where somebody is counted.
local function notify(process, message)
  local channel = string.gsub(queue, '}:queue', '}:grants', 1) .. ':' .. process
  local counted = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', channel)
  if tonumber(counted[2]) == 0 then return 0 end
  local heard = counted.err and counted or redis.pcall(publish, channel, message)
  if type(heard) == 'number' then return heard end
  refused = true
  return 0
end

-- Empty without a fence.
local function mint()
  if not fence then return '' end
  ${WRITE_NOTHING}
  local last = redis.call('GET', fence)
  ${mint('fence')}
end

-- The token of the grant that holds the lock; empty where a process without fencing may have granted it.
local function tokenOf(owner)
  local last = fence and redis.call('GET', fence)
  local grantedAt = string.match(owner, '@(%d+)$')
  return last and (not grantedAt or last == grantedAt) and last or ''
end

-- ms since the last pause ended; below 0 while it lasts. One too far ahead is of before the clock was set back.
local function sincePause()
  local at = tonumber(redis.call('HGET', tickets, 'pause'))
  return at and at - now <= ${1000 * LONGEST_PAUSE} and (now - at) / 1000 or math.huge
end

-- ms for which a free lock is left to pollers.
local function pauseLeft() return math.max(0, math.ceil(-sincePause())) end

-- ms until the lock's key ends, or until a free lock may be handed over.
local function lifeLeft()
  local life = redis.call('PTTL', lock)
  return life == -2 and pauseLeft() or life
end

-- OUTSIDER, unless the holder has a grant from the queue, or its process runs the script, or is noted.
local function outsider(holder, process, itsNoted)
  if not holder or string.find(holder, '@', 1, true) then return '' end
  return (itsNoted or processOf(holder) == process) and '' or '${OUTSIDER}'
end

-- What is noted of a process: until when it lives in ms, the ttl of its ticket, how it is notified.
local function presenceIn(noted)
  local lifeEnd, ttl, how = string.match(noted or '', '^(%d+):(%d+):(%a+)$')
  return tonumber(lifeEnd), tonumber(ttl), how
end

-- The position of a caller that called \`age\` microseconds ago; and the last ticket in the queue.
local function positionOf(age)
  local last, lastAt = unpack(redis.call('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  lastAt = tonumber(lastAt or 0)
  return digits(lastAt > now + ${SET_BACK} and lastAt + 1 or now - age), last
end

-- Notes that the process of a queued ticket lives for \`life\` ms, if \`noted\` does not say it. \`isNew\`: the queue may have
-- no expiry yet.
local function note(process, noted, how, ttl, life, isNew)
  local lifeEnd, notedTtl, notedHow = presenceIn(noted)
  local longer = lifeEnd and lifeEnd - now / 1000 - life
  local isNoted = notedHow == how and notedTtl == tonumber(ttl) and longer >= 0 and longer <= ${NOTED_LONGER}
  if isNoted and not isNew then return end
  local total = life + ${NOTED_LONGER}
  redis.call('HSET', tickets, process, digits(now / 1000 + total) .. ':' .. ttl .. ':' .. how)
  -- The queue may be new, and others noted for longer.
  total = math.max(total, redis.call('PTTL', tickets))
  redis.call('PEXPIRE', tickets, total)
  if redis.call('PTTL', queue) < total then redis.call('PEXPIRE', queue, total) end
  -- Where there are many fields, those of the dead go: at most once a second a process.
  if isNoted or redis.call('HLEN', tickets) <= redis.call('ZCARD', queue) + 16 then return end
  local fields = redis.call('HGETALL', tickets)
  for i = 1, #fields, 2 do
    local itsEnd = presenceIn(fields[i + 1])
    if itsEnd and itsEnd * 1000 < now then redis.call('HDEL', tickets, fields[i]) end
  end
end

-- Where the lock is the ticket's already, as a reply or message was lost: gives it the full ttl. Returns as handOver.
local function grantedBefore(ticket, holder, ttl)
  if type(holder) ~= 'string' or ticketOf(holder) ~= ticket then return end
  ${PROLONG}
  redis.call('ZREM', queue, ticket)
  local token = tokenOf(holder)
  return holder, token == '' and mint() or token, redis.call('PTTL', lock)
end

-- Gives a lock that is or will be free to the first ticket whose process can be reached. \`mine\`: the process that
-- runs the script, for the ticket \`asking\`. Only that one gets its full ttl, \`ttlAsked\`, and every other one the
-- claim window.
-- \`ticket\`, \`noted\`: the first ticket, and what is noted of its process, if the script has read that already.
-- Returns the owner and the token, both '' for a ticket of another process, and the ms that are granted; or nothing.
local function handOver(mine, asking, ttlAsked, ticket, noted)
  local passedOver, token = 0
  while true do
    ticket = ticket or redis.call('ZRANGE', queue, passedOver, passedOver)[1]
    if not ticket then
      -- Those that were passed over do not have it.
      if passedOver > 0 then redis.call('DEL', lock) end
      return
    end
    local owner = ticket .. '@' .. digits(now)
    if ticket == asking then
      redis.call('ZREM', queue, ticket)
      redis.call('SET', lock, owner, 'PX', ttlAsked)
      return owner, mint(), tonumber(ttlAsked)
    end
    local process = processOf(ticket)
    local lifeEnd, ttl, how = presenceIn(noted or redis.call('HGET', tickets, process))
    if not lifeEnd or lifeEnd * 1000 < now then
      -- Its process counts as dead. If alive, it enters the ticket again, with its first score.
      redis.call('ZREM', queue, ticket)
    else
      local window = math.min(${CLAIM_WINDOW}, ttl)
      token = token or mint()
      -- Before the message, since who gets that enters. Out of memory: see script-parts.ts.
      if redis.pcall('SET', lock, owner, 'PX', window).err then
        ${WRITE_NOTHING}
        redis.call('SET', lock, owner, 'PX', window)
      end
      -- A process that polls finds the grant by itself.
      if process == mine or how == 'poll' or notify(process, 'grant ' .. owner .. ' ' .. window .. ' ' .. token) > 0 then
        redis.call('ZREM', queue, ticket)
        if process ~= mine then owner, token = '', '' end
        return owner, token, window
      end
      -- Dead or reconnecting: it keeps its position.
      passedOver = passedOver + 1
    end
    ticket, noted = nil, nil
  end
end
`;

/**
 * Acquires a lock, or takes a position in its queue.
 *
 * ARGV: ticket, ttl in ms, and as one text: PUBLISH or SPUBLISH, how the ticket's process is notified (NotifiedBy), ms
 * until it is taken for dead, microseconds since the caller's call, the ticket's first score or ''
 * Returns 1, or with a fence the token as text, when the lock was free and there were no waiters; else a table.
 */
export const ACQUIRE = new LockScript(
  'acquire (fair)',
  `${KEYS_BY_NAME}
local ticket, ttl = ARGV[1], ARGV[2]
local hasWaiters = redis.call('EXISTS', queue, tickets) > 0
-- Nearly always the lock is free.
local set = not hasWaiters and redis.pcall('SET', lock, ticket, 'NX', 'PX', ttl)
if set and not set.err then
  if not fence then return 1 end
  local time, last = redis.call('TIME'), redis.call('GET', fence)
  ${mint('fence')}
end
local holder = redis.call('GET', lock)
-- The server refused to write.
if set and not holder then return set end
local publish, how, life, age, score = string.match(ARGV[3], '^(%S+) (%S+) (%S+) (%S+) (%S*)$')
${NOW}
${FUNCTIONS}
local process, its = processOf(ticket), holder and processOf(holder)
local noted, itsNoted = unpack(redis.call('HMGET', tickets, process, its or ''))
local owner, token, left = grantedBefore(ticket, holder, ttl)
if how == 'none' and not owner then
  -- A caller that does not wait is refused only while the lock is held, so it ignores a pause.
  if not holder then
    owner, token, left = handOver(process)
    if not owner then
      -- No waiter can be reached.
      ${WRITE_NOTHING}
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
    notify(its, '${WANTED}')
  end
end
return { left or lifeLeft(), score, owner or outsider(holder, process, itsNoted), token or '', holder }`,
  true,
  isGranted,
);

/**
 * Prolongs the life of a ticket that is in the queue, and hands a free lock over. It never creates a ticket: a poll that
 * is executed late must not leave one. A process that does not listen as it says counts as one that polls. So does one
 * that finds a grant long after the message about it.
 *
 * ARGV: ticket; as one text: PUBLISH or SPUBLISH, how the process is notified, ms until it is taken for dead
 * Returns a table.
 */
export const POLL = new LockScript(
  'poll (fair)',
  `${KEYS_BY_NAME}
local ticket = ARGV[1]
local publish, how, life = string.match(ARGV[2], '^(%S+) (%S+) (%S+)$')
${NOW}
${FUNCTIONS}
local holder = redis.call('GET', lock)
local process, its = processOf(ticket), holder and processOf(holder)
local noted, itsNoted = unpack(redis.call('HMGET', tickets, process, its or ''))
-- Eviction, or a command by hand, may have taken one of the two keys.
local _, ttl, notedHow = presenceIn(noted)
local score = ttl and redis.call('ZSCORE', queue, ticket)
-- The server may have lost a connection that the process takes for open.
local isUnreachable = how == 'message' and notify(process, 'poll') == 0 and not refused
if score then
  ${WRITE_NOTHING}
  note(process, noted, isUnreachable and 'poll' or how, ttl, life)
end
local owner, token, left
if not holder then
  if pauseLeft() == 0 then owner, token, left = handOver(process) end
elseif its == process then
  owner, token = holder, tokenOf(holder)
  -- A message was published about it, and counted. Else each grant would lie there until such a poll.
  local grantedAt = ticketOf(holder) == ticket and string.match(holder, '@(%d+)$')
  local isLate = grantedAt and now - grantedAt > ${MESSAGE_ARRIVES_WITHIN}
  isUnreachable = isUnreachable or isLate and how == 'message' and notedHow == how
end
return {
  left or lifeLeft(), score or '', owner or outsider(holder, process, itsNoted), token or '',
  holder, 1, 0, isUnreachable and 1 or 0
}`,
  true,
);

/** How RELEASE deletes the lock. Sets `deleted`. */
const FREE = (keys: string) => `${deleteBy('ARGV[2]', keys)}
  ${publish(4)}`;

const RELEASE_SOURCE = `${KEYS_BY_NAME}
local owner = ARGV[1]
-- A key of another type is the key of another owner. No other error says whose it is.
local holder = redis.pcall('GET', lock)
if type(holder) == 'table' and not string.find(holder.err, '${IN_LUA.wrongType}', 1, true) then return holder end
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
  ${FREE('lock, tickets')}
  return deleted
end
${NOW}
local mine = string.match(owner, '^(.*):')
local noted, itsNoted
if first then noted, itsNoted = unpack(redis.call('HMGET', tickets, mine, string.match(first, '^(.*):'))) end
if isOwners and next and more == '' then
  -- It called before all that wait, and they know its process: without a ticket it may be a poller.
  local isFirst = first and now - age < firstAt and firstAt <= now + ${SET_BACK}
  if not first or isFirst and noted then
    if redis.pcall('SET', lock, next, 'PX', ttl).err then
      -- Out of memory: see script-parts.ts.
      redis.call('PEXPIRE', lock, ttl)
      redis.call('SET', lock, next, 'PX', ttl)
    end
    if not fence then return first and 2 or 1 end
    local last = redis.call('GET', fence)
    if first then most = 1 end
    ${mintBlock('fence', 'most')}
  end
end
${FUNCTIONS}
local score
if isOwners and next then
  score = positionOf(age)
  if type(redis.pcall('ZADD', queue, score, next)) == 'table' then
    -- Out of memory: see script-parts.ts.
    ${WRITE_NOTHING}
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
  local kept = type(holder) == 'string' and string.match(holder, '^${KEPT}(.*)$')
  if granted or position or kept and (kept == owner or ticketOf(kept) == owner) then
    -- An earlier run, whose reply was lost, has handed the lock over, or kept it.
    return { left or lifeLeft(), position or '', granted or '', token or '' }
  end
end
local found = isOwners and 1 or holder and -1 or 0
local pause, interval, keepFor, minHold, keyTtl = 0, 0, 0, 0, 0
if more ~= '' then
  pause, interval, keepFor, minHold, keyTtl = string.match(more, '^${' (%S+)'.repeat(5)}$')
  pause, keepFor = tonumber(pause), tonumber(keepFor)
end
local pauseIn = pause > 0 and math.max(0, math.ceil(interval - pause - sincePause()))
if isOwners and (keepFor > 0 or pauseIn == 0) then
  if keepFor > 0 then
    -- The key of a grant by hand-over may not have its full ttl yet. Its owner value says its age.
    local grantedAt = string.match(holder, '@(%d+)$')
    ${leftToKeep('keepFor', 'minHold', 'keyTtl', 'grantedAt and (now - grantedAt) / 1000')}
    redis.call('PEXPIRE', lock, left)
    redis.call('SET', lock, '${KEPT}' .. holder, 'PX', left)
    ${publish(4)}
  else
    ${FREE('lock')}
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
  ${FREE('lock')}
  found = deleted
end
-- Mostly another process has it now.
if granted == '' and found == 1 and not refused and not pauseIn then return { left, score or '' } end
return {
  left or lifeLeft(), score or '', granted or '', token or '',
  false, found, refused and 1 or 0, 0, pauseIn and math.max(1, pauseIn) or nil
}`;

/**
 * Releases a lock and hands it over to the first ticket in the queue; takes a ticket out of the queue, with any grant of
 * it. The lock goes to nobody while its `minHold` has not ended, and when it is left to pollers: if the last pause is long
 * ago, a release is published to the waiters of `spin` and `pub-sub` under the same name, and of Spring.
 *
 * ARGV: owner or ticket, command that deletes, a text, what `publish` of spring takes. The text is PUBLISH or SPUBLISH.
 * If there is more to do: how the process is notified, ms until it is taken for dead; for HAND_OVER microseconds since the
 * call of the next caller, its ttl in ms, the most tokens that are of use, its ticket, else 0, 0, 0, ''. With a pause or
 * a minHold also: ms of a pause and ms from one to the next; ms left of the minHold by the local clock, minHold and ttl of the acquisition in ms, or 0.
 * Returns 1 or 2 when the lock was the owner's and there were no waiters (2: deleted by DEL); else a table.
 */
export const RELEASE = new LockScript('release (fair)', RELEASE_SOURCE);

/**
 * Releases for the next caller of the process: the lock goes to that one or to one of the queue: to the earliest of them
 * that can be reached. Where it does not get the lock, the next caller has a position in the queue afterwards.
 * Returns 1 when the lock is the next ticket's and there were no others, 2 when it is before all others; with a fence in
 * both cases tokens (see `mintBlock`), several only when there were no others; else a table.
 */
export const HAND_OVER = new LockScript('hand over (fair)', RELEASE_SOURCE, true, isGranted);

/** The first renewal of a grant by hand-over: as that of spring, but an acquisition, which replicas have to have. */
export const RENEW_GRANT = new LockScript('renew a grant (fair)', SPRING_SCRIPTS.RENEW.source, false, isFound);

/**
 * Notified by: PUBLISH or SPUBLISH and the channel of the grants without its process, for the first in the queue; what
 * `publish` of spring takes, for all that listen. Those that are notified poll.
 */
export const INSPECTION = inspectionScripts(
  'fair',
  STRING.holder,
  'ZCARD',
  `
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first then redis.pcall(ARGV[4], ARGV[5] .. ':' .. string.match(first, '^(.*):'), KEYS[1]) end
${publish(6)}`,
);

/** Whether the reply says that the lock was granted to a ticket of the process. */
function isGranted(reply: unknown): boolean {
  return isGrant(reply) || !['', OUTSIDER].includes((reply as string[])[2] ?? '');
}
