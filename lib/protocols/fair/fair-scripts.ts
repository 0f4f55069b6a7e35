import { LockScript } from '../../redis/script';
import { isFound } from '../format';
import { deleteBy, EXTEND, FENCE_TTL, RETURN_UNLESS_OWNED } from '../spring/spring-scripts';
import { FUNCTIONS, HAND_OVER_FUNCTION, KEYS_BY_NAME, PROLONG } from './fair-script-parts';

export { CLAIM_WINDOW, type NotifiedBy } from './fair-script-parts';

/*
 * The fair lock in Redis, all keys in one hash slot:
 *
 *   lock     string   the owner, as for spin and pub-sub: under one name the types exclude each other
 *   queue    zset     ticket -> score, the order of arrival
 *   tickets  hash     <ticket>           -> ttl in ms that it asks for
 *                     <process>          -> "<end of its life, epoch ms>:<how it is notified>", for all its tickets
 *                     granted            -> the last grant by hand-over
 *                     absent:<process>   -> it let a grant run out: it is passed over until it is heard of again
 *   fence    string   the last fencing token
 *
 * A ticket is "<process>:<number>". An acquisition that finds the lock free is granted under its ticket; a grant by
 * hand-over has an owner value of its own, "<ticket>@<server time of the grant>". So whatever is sent later for an
 * earlier grant finds nothing.
 *
 * KEYS of every script: lock, queue, tickets [, fence]. ARGV[1] is PUBLISH or SPUBLISH. Times of the server are in
 * microseconds. Every script is idempotent.
 */

/**
 * Acquires a lock, or takes a position in its queue.
 *
 * ARGV: PUBLISH or SPUBLISH, ticket, ttl in ms, its first score or '' if it has none, how its process is notified
 * (NotifiedBy), ms until the process is taken for dead unless it is heard of
 * Returns 1, or with a fence the token as text, when the lock was free and there were no waiters; else { owner of the
 * process that has been granted the lock or '', its token, life of the lock's key in ms, server time, score }.
 */
export const ACQUIRE = new LockScript(
  'acquire (fair)',
  `${KEYS_BY_NAME}
local holder = redis.call('GET', lock)
if not holder and redis.call('EXISTS', queue, tickets) == 0 then
  local now = fence and redis.call('TIME')
  local last = fence and redis.call('GET', fence)
  redis.call('SET', lock, ARGV[2], 'PX', ARGV[3])
  if not fence then return 1 end
  local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', fence, token, 'PX', ${FENCE_TTL})
  return token
end
${FUNCTIONS}${HAND_OVER_FUNCTION}
local ticket, ttl, score, how, life = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local process = processOf(ticket)
if holder and (holder == ticket or string.match(holder, '^(.*)@') == ticket) then
  -- It is granted already: the reply or the message was lost.
  if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
  forget(ticket)
  hear(process)
  local token = tokenOf(holder)
  if token == '' then token = mint() end
  return { holder, token, redis.call('PTTL', lock), digits(now), score }
end
local owner, token
if how == 'none' then
  if not holder then
    owner, token = handOver(process)
    if not owner then
      -- No waiter can be reached.
      give(ticket, ttl)
      owner, token = ticket, mint()
    end
  end
  hear(process)
else
  -- With a position already, it keeps it even when the server is out of memory: a script that has written may go on.
  if score ~= '' then hear(process) end
  if score == '' then
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
    score = redis.call('ZSCORE', queue, ticket) or digits(math.max((tonumber(last) or 0) + 1, now))
  end
  redis.call('ZADD', queue, 'NX', score, ticket)
  redis.call('HSET', tickets, ticket, ttl, process, digits(now / 1000 + tonumber(life)) .. ':' .. how)
  hear(process)
  ${PROLONG('life')}
  if not holder then owner, token = handOver(process, ticket) end
end
if type(owner) ~= 'string' then owner, token = '', '' end
return { owner, token, redis.call('PTTL', lock), digits(now), score }`,
);

/**
 * Polls for the waiters of one process: prolongs the life of the tickets that are in the queue, and hands a free lock
 * over. It never creates a ticket: a poll that is executed late must not leave one.
 *
 * ARGV: PUBLISH or SPUBLISH, process, how it is notified, ms until it is taken for dead, tickets
 * Returns { owner of the process that holds the lock or '', its token or '', life of the lock's key in ms, server time,
 * 1 when the process had let a grant run out, positions among the tickets of those that are not in the queue }.
 */
export const POLL = new LockScript(
  'poll (fair)',
  `${KEYS_BY_NAME}${FUNCTIONS}${HAND_OVER_FUNCTION}
local process, how, life = ARGV[2], ARGV[3], ARGV[4]
local waiting = {}
for i = 5, #ARGV do waiting[#waiting + 1] = ARGV[i] end
local missing = {}
for i, ttl in ipairs(redis.call('HMGET', tickets, unpack(waiting))) do
  -- Eviction, or a command by hand, may have taken one of the two keys.
  if not ttl or not redis.call('ZSCORE', queue, waiting[i]) then missing[#missing + 1] = i end
end
local lapsed = hear(process)
if #missing < #waiting then
  redis.call('HSET', tickets, process, digits(now / 1000 + tonumber(life)) .. ':' .. how)
  ${PROLONG('life')}
end
local owner, token = redis.call('GET', lock), ''
if not owner then
  owner, token = handOver(process)
elseif processOf(owner) == process then
  token = tokenOf(owner)
else
  owner = ''
end
if type(owner) ~= 'string' then owner, token = '', '' end
return { owner, token, redis.call('PTTL', lock), digits(now), lapsed, unpack(missing) }`,
);

/**
 * Releases a lock and hands it over to the next ticket; takes a ticket out of the queue. With a ticket it also releases
 * any grant of that ticket.
 *
 * ARGV: PUBLISH or SPUBLISH, owner or ticket, command that deletes, channels of spin and pub-sub
 * Returns 1 or 2 when the lock was the owner's and there were no waiters (2: deleted by DEL); else { 1 or 2 it was the
 * owner's, 0 no key, -1 the key of another owner; owner of the process that has been granted the lock or '', its token,
 * life of the lock's key in ms, server time, 1 when the server refused to publish }.
 */
export const RELEASE = new LockScript(
  'release (fair)',
  `${KEYS_BY_NAME}
local owner = ARGV[2]
-- pcall: a key of another type is the key of another owner.
local holder = redis.pcall('GET', lock)
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
if isOwners and redis.call('EXISTS', queue, tickets) == 0 then
  ${deleteBy('ARGV[3]')}
  for i = 4, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
  return deleted
end
${FUNCTIONS}${HAND_OVER_FUNCTION}
local process = processOf(owner)
forget(string.match(owner, '^(.*)@') or owner)
hear(process)
local granted, token
local found = isOwners and 1 or holder and -1 or 0
if found >= 0 then
  granted, token = handOver(process)
  if redis.call('ZCARD', queue) == 0 and not granted then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  ${deleteBy('ARGV[3]')}
  found = deleted
  for i = 4, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
end
if type(granted) ~= 'string' then granted, token = '', '' end
local life = type(holder) == 'table' and 0 or redis.call('PTTL', lock)
return { found, granted, token, life, digits(now), refused and 1 or 0 }`,
  isFound,
);

/**
 * The first renewal of a grant by hand-over: as the renewal of spring, and the grant is noted as claimed. Else a lease
 * that ended by its ttl would look like a grant that ran out, and its process would be passed over.
 *
 * KEYS: lock, tickets
 * ARGV: owner, ttl in ms
 * Returns as the script of spring: 1 the key has the ttl; { life in ms }; 0 no key; -1 the key of another owner.
 */
export const RENEW_GRANT = new LockScript(
  'renew a grant (fair)',
  `${RETURN_UNLESS_OWNED}
if redis.call('HGET', KEYS[2], 'granted') == ARGV[1] then redis.call('HDEL', KEYS[2], 'granted') end
${EXTEND}`,
  isFound,
);
