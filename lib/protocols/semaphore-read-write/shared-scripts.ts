import { KEPT } from '../../owner-name';
import { LockScript } from '../../redis/script';
import { isFound, isGrant } from '../format/replies';
import { EXAMINE_ERROR, examineGone, mark, mint } from '../format/script-parts';
import type { SharedKind } from './shared-kinds';

/*
 * A shared lock in Redis: several owners at a time, under a rule. Semaphores and read/write locks have one format. All
 * keys are in one hash slot:
 *
 *   lock      zset     <kind>:<owner> -> when its lease ends, epoch ms; the key expires with the last of them
 *                      <kind>:kept@<owner>: unlocked, and taken until its minHold ends; counts as any lease
 *   waiters   hash     <kind>:<owner> -> "<arrival, epoch µs>:<until when its process is waited for, epoch ms>", a ticket
 *                      permits        -> "<the number of a semaphore>:<when it was given, epoch ms>", while there are
 *                                        tickets
 *   fence     string   the last fencing token, of writers only
 *
 * A kind is semaphore, read or write. Each process has one ticket of each kind at a time, so that the queue is short: a
 * script reads all of it. A waiting process polls, which prolongs its ticket.
 *
 * KEYS of every script: lock, waiters [, fence]. ARGV begins with: kind, owner. Every time is the server's. Every
 * script is idempotent.
 */

/** What every script begins with. */
export const LOCK = `
local lock, waiters, kind, owner = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local member = kind .. ':' .. owner
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end

-- A lease that has ended stays in the key while others prolong it. Returns how many there were.
local function removeEnded() return redis.call('ZREMRANGEBYSCORE', lock, '-inf', digits(now)) end

local function expireWithLastLease()
  redis.call('PEXPIREAT', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2])
end`;

/**
 * The queue, and who may enter. `readQueue` comes first, when the leases that have ended were removed. It sets:
 *
 *   queue      the tickets, in the order of their arrival
 *   permits    the number that counts for them, given at `givenAt`
 *   isDropped  there were tickets whose process has not polled for too long, which it removes, but not `member`
 *   holders    how many leases there are; `firstHolder`: a member; `isWritten`: it is a writer's
 *
 * Returns whether there was anything in the hash.
 */
export const QUEUE = `
local queue, permits, givenAt, isDropped, holders, firstHolder, isWritten = {}, nil, nil, false, 0, nil, false
local function readQueue()
  local fields = redis.call('HGETALL', waiters)
  for i = 1, #fields, 2 do
    local ticket, value = fields[i], fields[i + 1]
    local first, second = string.match(value, '^(%d+):(%d+)$')
    if ticket == 'permits' then
      permits, givenAt = tonumber(first), tonumber(second)
    elseif ticket == member or tonumber(second) > now then
      local kindOf = string.match(ticket, '^%a+')
      queue[#queue + 1] = { ticket = ticket, kind = kindOf, arrival = tonumber(first), seenUntil = tonumber(second) }
    else
      redis.call('HDEL', waiters, ticket)
      isDropped = true
    end
  end
  table.sort(queue, function(one, other)
    if one.arrival == other.arrival then return one.ticket < other.ticket end
    return one.arrival < other.arrival
  end)
  holders = redis.call('ZCARD', lock)
  firstHolder = redis.call('ZRANGE', lock, 0, 0)[1]
  isWritten = firstHolder and string.sub(firstHolder, 1, 6) == 'write:'
  return #fields > 0
end

-- A ticket in front, of which some are for writing, counts as if it had entered: so nobody overtakes.
local function mayEnter(as, front, writers)
  if as == 'semaphore' then return holders + front < (permits or 1) end
  if as == 'read' then return not isWritten and writers == 0 end
  return holders + front == 0
end

-- Publishes, in one message, the tickets that may enter now. Returns -1 when the server refused to publish, else 0.
-- pcall: else a user without rights on channels could not release.
local function notifyNext(channel)
  local entrants, writers = {}, 0
  for i, waiter in ipairs(queue) do
    if not mayEnter(waiter.kind, i - 1, writers) then break end
    entrants[i] = waiter.ticket
    if waiter.kind == 'write' then writers = writers + 1 end
  end
  if #entrants == 0 then return 0 end
  return type(redis.pcall('PUBLISH', channel, table.concat(entrants, ' '))) == 'table' and -1 or 0
end`;

/** Runs `then` if a lease of `owner` was ended by force: the mark has the owners, with spaces between them. All in Lua. */
const ifForcedAmong = (owner: string, then: string, lock: string) => `${mark(lock)}
local marked = redis.pcall('GET', mark)
if type(marked) == 'string' and string.find(' ' .. marked .. ' ', ' ' .. ${owner} .. ' ', 1, true) then ${then} end`;

/** Sets `score`. A key of another type is the key of another owner: returns `others` then. Returns any other error. */
const readScore = (others: string) => `
local score = redis.pcall('ZSCORE', lock, member)
if type(score) == 'table' then
  if string.find(score.err, 'WRONGTYPE', 1, true) then return ${others} end
  return score
end`;

/**
 * Enters, or takes a position in the queue.
 *
 * ARGV: as above, then channel, ttl in ms, permits, ms since they were given, 1 if the lock has not been told so or 0,
 * 1 to queue or 0, arrival or '' when it is not known, ms for which the ticket is kept
 * Returns 1, or with a fence the token as text, when the owner has entered; else { ms until the first lease ends, or
 * until the first ticket is dropped; the owner of that lease or ''; arrival or ''; the number of permits, 0 for others
 * than semaphores }.
 */
export const ACQUIRE = new LockScript(
  'acquire (shared)',
  `${LOCK}${QUEUE}
local channel, ttl, given, age, isNews = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7] == '1'
local queues, arrival, keptFor = ARGV[8], ARGV[9], ARGV[10]
-- A key of another type, or no memory left: this command, which changes nothing, fails before anything was written.
redis.call('ZADD', lock, 'XX', 0, '')
local hasEnded = removeEnded() > 0
local hadQueue = readQueue()

for _, other in ipairs({ firstHolder or member, queue[1] and queue[1].ticket or member }) do
  if (string.sub(other, 1, 10) == 'semaphore:') ~= (kind == 'semaphore') then
    local isHere, isThere = 'a semaphore', 'a read/write lock'
    if kind ~= 'semaphore' then isHere, isThere = isThere, isHere end
    return redis.error_reply('WRONGKIND It is ' .. isThere .. ' in Redis, and it is used as ' .. isHere .. ' here')
  end
end

-- The number that was given last counts. A time to come is from before the clock was set back.
local stored = permits
local isGiven = not stored or isNews and (now - age >= givenAt or givenAt > now)
if isGiven then permits, givenAt = given, now - age end

local front, writers, position = 0, 0, nil
for i, waiter in ipairs(queue) do
  if waiter.ticket == member then position = i end
  if not position and (arrival == '' or waiter.arrival <= tonumber(arrival)) then
    front = front + 1
    if waiter.kind == 'write' then writers = writers + 1 end
  end
end

local score = redis.call('ZSCORE', lock, member)
local isGranted = score or mayEnter(kind, front, writers)
local reply
if isGranted then
  -- It may be ours already, when the reply was lost. A late repetition must not shorten a renewed lease.
  if not score or tonumber(score) < now + ttl then redis.call('ZADD', lock, digits(now + ttl), member) end
  expireWithLastLease()
  if not score then holders = holders + 1 end
  isWritten = isWritten or kind == 'write'
  if position then
    redis.call('HDEL', waiters, member)
    table.remove(queue, position)
  end
else
  if queues == '1' then
    local last = queue[#queue] and queue[#queue].arrival or 0
    if position then arrival = digits(queue[position].arrival)
    elseif arrival == '' then arrival = digits(math.max(last + 1, time[1] * 1000000 + time[2])) end
    redis.call('HSET', waiters, member, arrival .. ':' .. digits(now + keptFor))
    if redis.call('PTTL', waiters) < tonumber(keptFor) then redis.call('PEXPIRE', waiters, keptFor) end
  end
  local next = redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')
  local ends = next[2] or queue[1] and queue[1].seenUntil or now + 1
  reply = { math.max(0, ends - now), next[1] and string.match(next[1], ':(.*)$') or '', arrival, permits }
end

if #queue == 0 and (isGranted or queues ~= '1') then
  if hadQueue then redis.call('DEL', waiters) end
elseif kind == 'semaphore' and isGiven then
  redis.call('HSET', waiters, 'permits', digits(permits) .. ':' .. digits(givenAt))
end
if hasEnded or isDropped or stored and permits > stored then notifyNext(channel) end
if reply then return reply end
if not KEYS[3] then return 1 end
local last = redis.call('GET', KEYS[3])
if score and last then return last end
${mint('KEYS[3]')}`,
  undefined,
  isGrant,
);

/**
 * Releases what the owner has, and takes it out of the queue. Notifies those that may enter. Where it has to stay taken
 * until its `minHold` ends, those that could enter without that are notified too: the reply to their next attempt says
 * when it ends.
 *
 * ARGV: as above, then channel; to keep it also: ms left by the local clock, minHold and ttl of the acquisition in ms
 * Returns { 1 released, 0 there was no lease, -1 it was ended by force or the key is of another type; -1 when the
 * server refused to publish, else 0 }.
 */
export const RELEASE = new LockScript(
  'release (shared)',
  `${LOCK}${QUEUE}
local channel, left, minHold, ttl = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
${readScore('{ -1, 0 }')}
redis.call('HDEL', waiters, member)
local kept = kind .. ':${KEPT}' .. owner
local wasKept = left and redis.call('ZSCORE', lock, kept)
removeEnded()
local found = redis.call('ZREM', lock, member)

local published = 0
if redis.call('EXISTS', waiters) == 1 then
  readQueue()
  if #queue == 0 then redis.call('DEL', waiters) end
  published = notifyNext(channel)
end

-- Kept already, and the reply was lost: a late attempt may have entered once more.
if wasKept then return { 1, published } end
if found == 0 then
  ${ifForcedAmong('owner', 'found = -1', 'lock')}
elseif left then
  -- The time since the acquisition, by the clock of the server: see leftToKeep.
  local age = ttl - (score - now)
  redis.call('ZADD', lock, digits(now + math.max(1, math.ceil(math.min(left, minHold - age)))), kept)
  expireWithLastLease()
end
return { found, published }`,
  isFound,
);

/**
 * Renews a lease, or only asks about it. Never shortens it.
 *
 * ARGV: as above, then ttl in ms, extend or ask
 * Returns 1 it has the ttl; { remaining ms } it lasts longer, or was only asked about; 0 there is none; -1 it was ended
 * by force, or the key is of another type.
 */
export const RENEW = new LockScript(
  'renew (shared)',
  `${LOCK}
local ttl, mode = tonumber(ARGV[3]), ARGV[4]
${readScore('-1')}
if not score or tonumber(score) <= now then
  -- Raises READONLY on a replica, where it says nothing that there is none.
  redis.call('ZREM', lock, member)
  local found = 0
  ${ifForcedAmong('owner', 'found = -1', 'lock')}
  return found
end
if score - now >= ttl or mode == 'ask' then return { score - now } end
-- First of all: out of memory, Redis refuses ZADD to a script that has not written yet.
removeEnded()
redis.call('ZADD', lock, 'XX', digits(now + ttl), member)
expireWithLastLease()
return 1`,
  isFound,
);

/**
 * Whether `owner` has a live lease of this kind. In Lua: sets `state`, nil when it has. Other owners hold the lock too,
 * so the command that writes touches nothing but the owner's member.
 */
export const memberHeld = (kind: SharedKind) => `
local member, time = '${kind}:' .. owner, redis.call('TIME')
local found = redis.pcall('ZSCORE', lock, member)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif not found or tonumber(found) <= time[1] * 1000 + math.floor(time[2] / 1000) then
${examineGone("'ZREM', lock, member", ifForcedAmong)}
end`;
