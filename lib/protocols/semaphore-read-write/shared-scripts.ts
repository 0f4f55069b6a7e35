import { LockScript } from '../../redis/script';
import { isFound, isGrant } from '../format/replies';
import { mint } from '../spring/spring-scripts';
import { ENTRY_RULE } from './entry-rule';
import {
  LEAVE_QUEUE,
  liveFor,
  notifyNext,
  PRELUDE,
  PROLONG,
  READ_QUEUE,
  READ_SCORE,
  RETURN_GONE,
  returnAndNotify,
} from './shared-script-parts';

/*
 * A shared lock in Redis: several owners at a time, under a rule. Semaphores and read/write locks have one format. All
 * keys are in one hash slot:
 *
 *   lock      zset     <kind>:<owner> -> when its lease ends, epoch ms; the key expires with the last of them
 *   waiters   hash     <kind>:<owner> -> "<arrival, epoch µs>:<until when its process is waited for, epoch ms>", a ticket
 *                      permits        -> the number of a semaphore, as given last, while there are tickets
 *   fence     string   the last fencing token, of writers only
 *
 * A kind is semaphore, read or write. Each process has one ticket of each kind at a time, so that the queue is short: a
 * script reads all of it. A waiting process polls, which prolongs its ticket.
 *
 * KEYS of every script: lock, waiters [, fence]. ARGV begins with: kind, owner. Every time is the server's. Every
 * script is idempotent.
 */

/**
 * Enters, or takes a position in the queue.
 *
 * ARGV: as above, then channel, ttl in ms, permits, 1 to queue or 0, arrival or '' when it is not known, ms for which
 * the ticket is kept
 * Returns 1, or with a fence the token as text, when the owner has entered; else { ms until the first lease ends, or
 * until the first ticket is dropped; the owner of that lease or ''; arrival or '' }.
 */
export const ACQUIRE = new LockScript(
  'acquire (shared)',
  `${PRELUDE}
local channel, ttl, given, queues, arrival, keptFor = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8]
-- A key of another type, or no memory left: this command, which changes nothing, fails before anything was written.
redis.call('ZADD', lock, 'XX', 0, '')
local isNotifying = redis.call('ZREMRANGEBYSCORE', lock, '-inf', digits(now)) > 0
${READ_QUEUE}
${ENTRY_RULE}
for _, other in ipairs({ first or member, queue[1] and queue[1].ticket or member }) do
  if (string.sub(other, 1, 10) == 'semaphore:') ~= (kind == 'semaphore') then
    local isHere, isThere = 'a semaphore', 'a read/write lock'
    if kind ~= 'semaphore' then isHere, isThere = isThere, isHere end
    return redis.error_reply('WRONGKIND It is ' .. isThere .. ' in Redis, and it is used as ' .. isHere .. ' here')
  end
end
local front, writers, position = 0, 0, nil
for i, waiter in ipairs(queue) do
  if waiter.ticket == member then position = i end
  if not position and (arrival == '' or waiter.arrival <= tonumber(arrival)) then
    front = front + 1
    if waiter.kind == 'write' then writers = writers + 1 end
  end
end
local stored = permits
if arrival == '' or not stored then permits = given end
if stored and permits > stored then isNotifying = true end
local score = redis.call('ZSCORE', lock, member)
local isGranted = score or mayEnter(kind, front, writers)
local reply
if isGranted then
  -- It may be ours already, when the reply was lost. A late repetition must not shorten a renewed lease.
  if not score or tonumber(score) < now + ttl then redis.call('ZADD', lock, digits(now + ttl), member) end
  ${PROLONG}
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
  reply = { math.max(0, ends - now), next[1] and string.match(next[1], ':(.*)$') or '', arrival }
end
if kind == 'semaphore' and permits ~= stored and (#queue > 0 or reply and queues == '1') then
  redis.call('HSET', waiters, 'permits', digits(permits))
elseif #queue == 0 and isGranted and #fields > 0 then
  redis.call('DEL', waiters)
end
if isNotifying or dropped then
  ${notifyNext('channel')}
end
if reply then return reply end
if not KEYS[3] then return 1 end
local last = redis.call('GET', KEYS[3])
if score and last then return last end
${mint('KEYS[3]')}`,
  undefined,
  isGrant,
);

/**
 * Releases what the owner has, and takes it out of the queue. Notifies those that may enter.
 *
 * ARGV: as above, then channel
 * Returns { 1 released, 0 there was no lease, -1 it was ended by force or the key is of another type; -1 when the
 * server refused to publish, else 0 }.
 */
export const RELEASE = new LockScript(
  'release (shared)',
  `${PRELUDE}${LEAVE_QUEUE}
local found = score and tonumber(score) > now and 1 or 0
if found == 1 then
  redis.call('ZREM', lock, member)
else
  ${RETURN_GONE}
end
${returnAndNotify('found')}`,
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
  `${PRELUDE}
local ttl = tonumber(ARGV[3])
${READ_SCORE}
if isOthers then return -1 end
local found = 0
if not score or tonumber(score) <= now then
  ${RETURN_GONE}
  return found
end
local remaining = score - now
if remaining >= ttl or ARGV[4] == 'ask' then return { remaining } end
-- First of all: out of memory, Redis refuses ZADD to a script that has not written yet.
${liveFor('ttl')}
redis.call('ZADD', lock, 'XX', digits(now + ttl), member)
return 1`,
  isFound,
);
