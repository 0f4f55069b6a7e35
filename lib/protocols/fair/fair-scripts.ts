import { KEPT } from '../../api/owner-name';
import { LockScript } from '../../redis/script';
import { isFound, isGrant } from '../format/replies';
import { deleteBy, ifForced, leftToKeep, mint } from '../format/script-parts';
import { inspectionScripts } from '../inspector';
import { LONGEST_PAUSE } from '../pollers';
import { publish, SPRING_SCRIPTS, STRING } from '../spring';

/*
 * The fair lock in Redis, all keys in one hash slot:
 *
 *   lock     string   the owner, as for spin and pub-sub: under one name the types exclude each other
 *   queue    zset     ticket -> score, when its caller called; of each process the first caller's ticket
 *   tickets  hash     <ticket>           -> ttl in ms that it asks for
 *                     <process>          -> "<end of its life, epoch ms>:<how it is notified>"
 *                     pause              -> when the last pause ends, in which a free lock is left to pollers
 *   fence    string   the last fencing token
 *
 * A ticket is "<process>:<number>". A caller that gets the lock by the script that was sent for it, or as the next
 * caller of a release of its own process, has it under its ticket. Every other grant has an owner value of its own,
 * "<ticket>@<server time of the grant>". So whatever is sent later for an earlier grant finds nothing.
 *
 * KEYS of every script: lock, queue, tickets [, fence]. Each argument costs the client and the server time: so several
 * are one text, with spaces between them. Times of the server are in microseconds. Every script is idempotent.
 *
 * A table that they return is what `QueueReply` says, in this order: owner, token, life, server time, score, holder;
 * RELEASE and POLL add found, refused, unreachable, pauseIn. What does not apply is '' or 0, or missing at the end.
 */

/** ms; a grant by hand-over lasts this long until it is renewed; never longer than the ttl that was asked for. */
export const CLAIM_WINDOW = 1_000;

/** In place of an owner: the holder may be of another lock type, or of a library that publishes no releases. */
export const OUTSIDER = 'outsider';

/** A message to the process that holds the lock: another process waits for it. */
export const WANTED = 'wanted';

/** How a process learns of a grant: by a message, or it polls. `none`: the caller does not wait. */
export type NotifiedBy = 'message' | 'poll' | 'none';

const KEYS_BY_NAME = `
local lock, queue, tickets, fence = KEYS[1], KEYS[2], KEYS[3], KEYS[4]`;

/** Changes nothing. At maxmemory a script may write more only if it has written before. */
const WRITE_NOTHING = "redis.call('ZREM', queue, '')";

/** Microseconds. */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]`;

/** Microseconds; a score that is further ahead shows that the clock was set back. Then calls cannot be compared. */
const SET_BACK = 1_000_000;

/**
 * What the scripts do with the queue. Inserted after the paths on which nobody else is to be granted the lock, since Lua
 * creates functions at every run. Needs `now` and `publish`: PUBLISH or SPUBLISH. Sets `refused` if the server refuses it.
 */
const FUNCTIONS = `
local refused = false

-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end

local function processOf(owner) return string.match(owner, '^(.*):') end
local function ticketOf(owner) return string.match(owner, '^(.*)@') or owner end

-- Returns how many connections of the process got the message.
local function notify(process, message)
  local channel = string.gsub(queue, '}:queue', '}:grants', 1) .. ':' .. process
  local heard = redis.pcall(publish, channel, message)
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

-- The token of the grant that holds the lock: that is its time, unless the clock was set back. Empty where this is not
-- certain, since a process without fencing may have granted it.
local function tokenOf(owner)
  local last = fence and redis.call('GET', fence)
  local grantedAt = string.match(owner, '@(%d+)$')
  return last and (not grantedAt or last == grantedAt) and last or ''
end

-- ms since the last pause ended; below 0 while it lasts. One that is too far ahead was written before the clock was set
-- back.
local function sincePause()
  local at = tonumber(redis.call('HGET', tickets, 'pause'))
  return at and at - now <= ${1000 * LONGEST_PAUSE} and (now - at) / 1000 or math.huge
end

-- ms for which a free lock is left to pollers.
local function pauseLeft() return math.max(0, math.ceil(-sincePause())) end

-- ms until another attempt is worth it: until the lock's key ends, or until a free lock may be handed over.
local function lifeLeft()
  local life = redis.call('PTTL', lock)
  return life == -2 and pauseLeft() or life
end

-- OUTSIDER, unless the owner value of the holder is that of a grant from the queue, or its process is the one that runs
-- the script, or has had a ticket lately.
local function outsider(holder, process)
  if not holder or string.find(holder, '@', 1, true) then return '' end
  local its = processOf(holder)
  return its and (its == process or redis.call('HGET', tickets, its)) and '' or '${OUTSIDER}'
end

local function forget(ticket)
  redis.call('ZREM', queue, ticket)
  redis.call('HDEL', tickets, ticket)
end

-- The position of a caller that called \`age\` microseconds ago. It may have waited in its process since.
local function positionOf(age)
  local last = tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0)
  return digits(last > now + ${SET_BACK} and last + 1 or now - age)
end

-- Enters a ticket, or prolongs its life. Its process is taken for alive for \`life\` ms. See WRITE_NOTHING.
local function enqueue(ticket, ttl, score, how, life)
  redis.call('ZADD', queue, score, ticket)
  local presence = digits(now / 1000 + tonumber(life)) .. ':' .. how
  local added = redis.call('HSET', tickets, ticket, ttl, processOf(ticket), presence)
  -- Where both fields are new, so may be the hash, without an expiry.
  if added == 2 or redis.call('PTTL', queue) < tonumber(life) then
    -- A second longer, so that not every script has to write it.
    for _, key in ipairs({ queue, tickets }) do redis.call('PEXPIRE', key, life + 1000) end
  end
end

-- Where the lock is the ticket's already, since a reply or a message was lost: gives it the full ttl. Returns as handOver.
local function grantedBefore(ticket, holder, ttl)
  if type(holder) ~= 'string' or ticketOf(holder) ~= ticket then return end
  if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
  forget(ticket)
  local token = tokenOf(holder)
  return holder, token == '' and mint() or token, redis.call('PTTL', lock)
end

-- Gives a lock that is free, or about to be, to the first ticket whose process can be reached. \`mine\`: the process that
-- runs the script. \`asking\`: the ticket that it was sent for. Only that one gets its full ttl: its process learns of it
-- from the reply, and follows it up if the reply is lost. Every other grant lasts for the claim window.
-- Returns the owner and the token, both '' for a ticket of another process, and the ms that are granted; or nothing. The
-- ticket is taken out of the queue before SET, so that a server at maxmemory allows it.
local function handOver(mine, asking)
  local passedOver, token = 0
  while true do
    local ticket = redis.call('ZRANGE', queue, passedOver, passedOver)[1]
    if not ticket then return end
    local process = processOf(ticket)
    local ttl, presence = unpack(redis.call('HMGET', tickets, ticket, process))
    local lifeEnd, how = string.match(presence or '', '^(%d+):(%a+)$')
    if not ttl or not lifeEnd or tonumber(lifeEnd) * 1000 < now then
      -- Its process counts as dead. If it is alive, it enters the ticket again, with its first score.
      forget(ticket)
    elseif ticket == asking then
      forget(ticket)
      redis.call('SET', lock, ticket, 'PX', ttl)
      return ticket, mint(), tonumber(ttl)
    else
      local window = math.min(${CLAIM_WINDOW}, tonumber(ttl))
      local owner = ticket .. '@' .. digits(now)
      token = token or mint()
      -- A process that polls finds the grant by itself.
      if process == mine or how == 'poll' or notify(process, 'grant ' .. owner .. ' ' .. window .. ' ' .. token) > 0 then
        forget(ticket)
        redis.call('SET', lock, owner, 'PX', window)
        if process ~= mine then owner, token = '', '' end
        return owner, token, window
      end
      -- It is dead or reconnecting: it is passed over and keeps its position.
      passedOver = passedOver + 1
    end
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
local process = processOf(ticket)
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
  if score == '' then score = redis.call('ZSCORE', queue, ticket) end
  -- The removal is a write too: see WRITE_NOTHING.
  if score then forget(ticket) else score = positionOf(age) end
  enqueue(ticket, ttl, score, how, life)
  local its = holder and processOf(holder)
  if not holder then
    if pauseLeft() == 0 then owner, token, left = handOver(process, ticket) end
  elseif its and its ~= process then
    -- It passes the lock on among its own callers until it hears of others.
    notify(its, '${WANTED}')
  end
end
return { owner or outsider(holder, process), token or '', left or lifeLeft(), digits(now), score, holder or '' }`,
  undefined,
  isGranted,
);

/**
 * Prolongs the life of a ticket that is in the queue, and hands a free lock over. It never creates a ticket: a poll that
 * is executed late must not leave one. A process that does not listen as it says counts as one that polls.
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
local process = processOf(ticket)
-- Eviction, or a command by hand, may have taken one of the two keys.
local ttl = redis.call('HGET', tickets, ticket)
local score = ttl and redis.call('ZSCORE', queue, ticket)
-- The server may have lost a connection that the process takes for open.
local isUnreachable = how == 'message' and notify(process, 'poll') == 0 and not refused
if score then
  ${WRITE_NOTHING}
  enqueue(ticket, ttl, score, isUnreachable and 'poll' or how, life)
end
-- Each process leaves a field. It is known by that while it lives. When there are many, those of the dead go.
if redis.call('HLEN', tickets) > 2 * redis.call('ZCARD', queue) + 16 then
  local fields = redis.call('HGETALL', tickets)
  for i = 1, #fields, 2 do
    local lifeEnd = string.match(fields[i + 1], '^(%d+):%a+$')
    if lifeEnd and tonumber(lifeEnd) * 1000 < now then redis.call('HDEL', tickets, fields[i]) end
  end
end
local holder = redis.call('GET', lock)
local owner, token, left
if not holder then
  if pauseLeft() == 0 then owner, token, left = handOver(process) end
elseif processOf(holder) == process then
  owner, token = holder, tokenOf(holder)
end
return {
  owner or outsider(holder, process), token or '', left or lifeLeft(), digits(now), score or '',
  holder or '', 1, 0, isUnreachable and 1 or 0
}`,
);

/** How RELEASE deletes the lock. Sets `deleted`. */
const FREE = `${deleteBy('ARGV[2]')}
  ${publish(4)}`;

const RELEASE_SOURCE = `${KEYS_BY_NAME}
local owner = ARGV[1]
-- pcall: a key of another type is the key of another owner.
local holder = redis.pcall('GET', lock)
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
-- The text is more than PUBLISH or SPUBLISH.
local hasMore = #ARGV[3] > 8
if isOwners and not hasMore and redis.call('EXISTS', queue, tickets) == 0 then
  ${FREE}
  return deleted
end
local publish, how, life, pause, interval, keepFor, minHold, keyTtl, age, next, ttl = ARGV[3]
if hasMore then
  publish, how, life, pause, interval, keepFor, minHold, keyTtl, age, next, ttl =
    string.match(publish, '^(%S+)${' (%S+)'.repeat(7)}${' ?(%S*)'.repeat(3)}$')
  if next == '' then next = nil end
end
pause, keepFor = tonumber(pause or 0), tonumber(keepFor or 0)
${NOW}
if isOwners and next and pause == 0 and keepFor == 0 then
  -- It called before all that wait. But they have to know its process: a holder that never had a ticket may be a poller.
  local first = tonumber(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2])
  local isFirst = first and now - age < first and first <= now + ${SET_BACK}
  if not first or isFirst and redis.call('HGET', tickets, string.match(owner, '^(.*):')) then
    if redis.pcall('SET', lock, next, 'PX', ttl).err then
      -- Out of memory, Redis refuses SET to a script that has not written yet.
      redis.call('PEXPIRE', lock, ttl)
      redis.call('SET', lock, next, 'PX', ttl)
    end
    if not fence then return first and 2 or 1 end
    local last = redis.call('GET', fence)
    ${mint('fence')}
  end
end
${FUNCTIONS}
local granted, token, left
if not isOwners then
  granted, token, left = grantedBefore(next, holder, ttl)
  local position = next and redis.call('ZSCORE', queue, next)
  local kept = type(holder) == 'string' and string.match(holder, '^${KEPT}(.*)$')
  if granted or position or kept and (kept == owner or ticketOf(kept) == owner) then
    -- An earlier run, whose reply was lost, has handed the lock over, or kept it, and has given the next ticket its position.
    return { granted or '', token or '', left or lifeLeft(), digits(now), position or '', '' }
  end
  -- The ticket of a holder is not in the queue.
  forget(ticketOf(owner))
end
local found = isOwners and 1 or holder and -1 or 0
if not holder then
  ${ifForced('owner', 'found = -1')}
end
local score = isOwners and next and positionOf(age)
if score then
  ${WRITE_NOTHING}
  enqueue(next, ttl, score, how, life)
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
    ${FREE}
    found = deleted
    redis.call('HSET', tickets, 'pause', digits(now + pause * 1000))
    redis.call('PEXPIRE', tickets, math.max(redis.call('PTTL', tickets), math.ceil(pause)))
  end
  -- Its process polls, and so learns when the key or the pause ends.
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then notify(processOf(first), lock) end
  return { '', '', lifeLeft(), digits(now), score or '', '', found, refused and 1 or 0, 0, pauseIn or nil }
end
if isOwners or (not holder and pauseLeft() == 0) then
  granted, token, left = handOver(processOf(owner), isOwners and next)
  if not granted and redis.call('ZCARD', queue) == 0 then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  ${FREE}
  found = deleted
end
return {
  granted or '', token or '', left or lifeLeft(), digits(now), score or '',
  '', found, refused and 1 or 0, 0, pauseIn and math.max(1, pauseIn) or nil
}`;

/**
 * Releases a lock and hands it over to the first ticket in the queue; takes a ticket out of the queue, with any grant of
 * it. The lock goes to nobody while its `minHold` has not ended, and when it is left to pollers: if the last pause is long
 * ago, a release is published to the waiters of `spin` and `pub-sub` under the same name, and of Spring.
 *
 * ARGV: owner or ticket, command that deletes, a text, what `publish` of spring takes. The text is PUBLISH or SPUBLISH.
 * If there is more to do: how the process is notified, ms until it is taken for dead; ms of a pause and ms from one to the
 * next; ms left of a minHold by the local clock, minHold and ttl of the acquisition in ms. What does not apply is 0. For
 * HAND_OVER also microseconds since the call of the next caller, its ticket, its ttl in ms
 * Returns 1 or 2 when the lock was the owner's and there were no waiters (2: deleted by DEL); else a table.
 */
export const RELEASE = new LockScript('release (fair)', RELEASE_SOURCE, (reply) => {
  return Number(Array.isArray(reply) ? reply[6] : reply) > 0;
});

/**
 * The same for the next caller of the process: the lock goes to that one or to one of the queue: to the earliest of them
 * that can be reached. Where it does not get the lock, the next caller has a position in the queue afterwards.
 * Returns 1 when the lock is the next ticket's and there were no others, 2 when it is before all others; with a fence the
 * token as text in both cases; else a table.
 */
export const HAND_OVER = new LockScript('release (fair)', RELEASE_SOURCE, undefined, isGranted);

/** The first renewal of a grant by hand-over: as that of spring, but an acquisition, which replicas have to have. */
export const RENEW_GRANT = new LockScript('renew a grant (fair)', SPRING_SCRIPTS.RENEW.source, isFound, isFound);

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
  return isGrant(reply) || !['', OUTSIDER].includes((reply as string[])[0] ?? '');
}
