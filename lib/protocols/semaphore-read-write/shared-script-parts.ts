import { ENTRY_RULE } from './entry-rule';
import { ifForcedAmong } from './shared-forced-unlock';

/* Parts of the scripts of shared locks. See shared-scripts.ts for the keys. */

/** The names of what every script gets. "Now" is the server's time, in ms. */
export const PRELUDE = `
local lock, waiters, kind, owner = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local member = kind .. ':' .. owner
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end`;

/**
 * Reads the queue: sets `queue`, the tickets in the order of their arrival, and `permits`, the number that counts for
 * those in it. Removes tickets whose process has not polled for too long, but not `member`, and sets `dropped`.
 */
export const READ_QUEUE = `
local queue, permits, dropped = {}, nil, false
local fields = redis.call('HGETALL', waiters)
for i = 1, #fields, 2 do
  local ticket, value = fields[i], fields[i + 1]
  if ticket == 'permits' then
    permits = tonumber(value)
  else
    local arrival, seenUntil = string.match(value, '^(%d+):(%d+)$')
    if ticket == member or tonumber(seenUntil) > now then
      local kindOf = string.match(ticket, '^%a+')
      queue[#queue + 1] = { ticket = ticket, kind = kindOf, arrival = tonumber(arrival), seenUntil = tonumber(seenUntil) }
    else
      redis.call('HDEL', waiters, ticket)
      dropped = true
    end
  end
end
table.sort(queue, function(one, other)
  if one.arrival == other.arrival then return one.ticket < other.ticket end
  return one.arrival < other.arrival
end)`;

/**
 * Publishes, in one message, the tickets that may enter now. Sets `published`: -1 when the server refused to publish,
 * else 0. pcall: else a user without rights on channels could not release.
 */
export const notifyNext = (channel: string) => `
local entrants, writersInFront, published = {}, 0, 0
for i, waiter in ipairs(queue) do
  if not mayEnter(waiter.kind, i - 1, writersInFront) then break end
  entrants[i] = waiter.ticket
  if waiter.kind == 'write' then writersInFront = writersInFront + 1 end
end
if #entrants > 0 and type(redis.pcall('PUBLISH', ${channel}, table.concat(entrants, ' '))) == 'table' then
  published = -1
end`;

/** The key expires with the last lease in it. */
export const PROLONG = `
redis.call('PEXPIREAT', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2])`;

/** The key lives at least that many ms, and as long as the last lease in it. In Lua. */
export const liveFor = (ms: string) => `
local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', lock, digits(math.max(last, now + ${ms})))`;

/** There is no live lease of the owner. Raises READONLY on a replica, where that says nothing. */
export const RETURN_GONE = `
redis.call('ZREM', lock, member)
${ifForcedAmong('owner', 'found = -1')}`;

/** Sets `score`, and `isOthers`: a key of another type is the key of another owner. Returns any other error. */
export const READ_SCORE = `
local score = redis.pcall('ZSCORE', lock, member)
local isOthers = type(score) == 'table'
if isOthers and not string.find(score.err, 'WRONGTYPE', 1, true) then return score end`;

/** The start of a script that gives a lease back: also takes the owner out of the queue. */
export const LEAVE_QUEUE = `${READ_SCORE}
redis.call('HDEL', waiters, member)
if isOthers then return { -1, 0 } end`;

/** The end of it: notifies those that may enter. `result`: what is returned first. `change`: of what the rule has read. In Lua. */
export const returnAndNotify = (result: string, change = '') => `
if redis.call('EXISTS', waiters) == 0 then return { ${result}, 0 } end
redis.call('ZREMRANGEBYSCORE', lock, '-inf', digits(now))
${READ_QUEUE}
if #queue == 0 then redis.call('DEL', waiters) end
${ENTRY_RULE}${change}
${notifyNext('ARGV[3]')}
return { ${result}, published }`;
