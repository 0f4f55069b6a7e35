import { LockScript } from '../../redis/script';
import { isFound } from '../format/replies';
import { ifForced } from '../inspection/forced-unlock';
import { deleteBy, mint } from '../spring/spring-scripts';
import { FUNCTIONS, HAND_OVER_FUNCTION, isGrantIn, KEYS_BY_NAME, PROLONG_QUEUE } from './fair-script-parts';

export { CLAIM_WINDOW, type NotifiedBy, OUTSIDER } from './fair-script-parts';

/*
 * The fair lock in Redis, all keys in one hash slot:
 *
 *   lock     string   the owner, as for spin and pub-sub: under one name the types exclude each other
 *   queue    zset     ticket -> score, the order of arrival
 *   tickets  hash     <ticket>           -> ttl in ms that it asks for
 *                     <process>          -> "<end of its life, epoch ms>:<how it is notified>", for all its tickets
 *                     granted            -> the last grant by hand-over
 *                     pause              -> when the last pause ends, in which a free lock is left to those that poll
 *                     absent:<process>   -> a grant to it lapsed: it is passed over until it runs a script again
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
 * Returns 1, or with a fence the token as text, when the lock was free and there were no waiters; else { the owner
 * value, if the lock was granted to a ticket of the process that runs the script, OUTSIDER, or ''; its token, life of
 * the lock's key in ms, server time, score, who held it before or '' }.
 */
export const ACQUIRE = new LockScript(
  'acquire (fair)',
  `${KEYS_BY_NAME}
local holder = redis.call('GET', lock)
if not holder and redis.call('EXISTS', queue, tickets) == 0 then
  local time = fence and redis.call('TIME')
  local last = fence and redis.call('GET', fence)
  redis.call('SET', lock, ARGV[2], 'PX', ARGV[3])
  if not fence then return 1 end
  ${mint('fence')}
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
  -- It may only be refused while the lock is held: so it ends a pause.
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
  ${PROLONG_QUEUE('life')}
  if not holder and pauseLeft() == 0 then owner, token = handOver(process, ticket) end
end
if type(owner) ~= 'string' then owner, token = outsider(holder, process), '' end
return { owner, token, lifeLeft(), digits(now), score, holder or '' }`,
  undefined,
  isGrantIn,
);

/**
 * Polls for the waiters of one process: prolongs the life of the tickets that are in the queue, and hands a free lock
 * over. It never creates a ticket: a poll that is executed late must not leave one. A process that messages
 * did not reach counts as one that polls.
 *
 * ARGV: PUBLISH or SPUBLISH, process, how it is notified, ms until it is taken for dead, tickets
 * Returns { owner value if the lock belongs to a ticket of the process, OUTSIDER, or ''; its token or ''; life of the
 * lock's key in ms, or of a free lock until it may be handed over; server time; 1 when a grant to the process had
 * lapsed, plus 2 when it does not listen as it says; who held the lock
 * before or ''; positions among the tickets of those that are not in the queue }.
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
local flags = hear(process)
-- Its connection may be gone for the server, and not for the process.
if how == 'message' and notify(process, 'poll') == 0 and not refused then flags = flags + 2 end
if flags > 0 then how = 'poll' end
if #missing < #waiting then
  redis.call('HSET', tickets, process, digits(now / 1000 + tonumber(life)) .. ':' .. how)
  ${PROLONG_QUEUE('life')}
end
local owner, token = redis.call('GET', lock), ''
local holder = owner or ''
if not owner then
  if pauseLeft() == 0 then owner, token = handOver(process) end
elseif processOf(owner) == process then
  token = tokenOf(owner)
else
  owner = outsider(owner, process)
end
if type(owner) ~= 'string' then owner, token = '', '' end
return { owner, token, lifeLeft(), digits(now), flags, holder, unpack(missing) }`,
);

/**
 * Releases a lock and hands it over to the next ticket; takes a ticket out of the queue. With a ticket it also releases
 * any grant of that ticket. The next ticket gets its full ttl if a caller of this process waits with it.
 *
 * ARGV: PUBLISH or SPUBLISH, owner or ticket, command that deletes, the first ticket of this process whose caller waits
 * or '', channels of spin and pub-sub
 * Returns 1 or 2 when the lock was the owner's and there were no waiters (2: deleted by DEL); else { 1 or 2 it was the
 * owner's, 0 no key, -1 the key of another owner; the owner value, if the lock was granted to a ticket of the process
 * that runs the script, else ''; its token, life of the lock's key in ms, server time, 1 when the server refused to
 * publish }.
 */
export const RELEASE = release('release (fair)', 5);

/**
 * Releases a lock. If the last pause is long ago, it leaves the lock to those that poll, and asks the first waiter to
 * poll too: it learns when the pause ends. Without waiters, the note of the pause ends with it. Else it does what
 * `RELEASE` does.
 *
 * ARGV: PUBLISH or SPUBLISH, owner or ticket, command that deletes, ticket as for RELEASE, ms of the pause, ms from one
 * pause to the next, channels of spin and pub-sub
 * Returns as `RELEASE`, and in a table a last value: 0 when the lock was left to pollers, or ms until it may be.
 */
export const LEAVE = release(
  'leave to pollers (fair)',
  7,
  `
local pause = tonumber(ARGV[5])
local left = redis.call('HGET', tickets, 'pause')
local due = left and math.ceil(tonumber(ARGV[6]) - pause - (now - left) / 1000) or 0
if isOwners and due <= 0 then
  note('pause', digits(now + pause * 1000))
  ${deleteBy('ARGV[3]')}
  for i = 7, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then notify(processOf(first), lock) else redis.call('PEXPIRE', tickets, math.ceil(pause)) end
  return { deleted, '', '', pause, digits(now), refused and 1 or 0, 0 }
end`,
  ', math.max(1, due)',
);

/** The path without waiters. `channels`: the first of them in ARGV. */
function ifAlone(channels: number): string {
  return `
if isOwners and redis.call('EXISTS', queue, tickets) == 0 then
  ${deleteBy('ARGV[3]')}
  for i = ${channels}, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
  return deleted
end`;
}

/** `channels`: the first of them in ARGV. `leave`: what it may do in place of a hand-over. `due`: what it returns then. */
function release(name: string, channels: number, leave = '', due = ''): LockScript {
  return new LockScript(
    name,
    `${KEYS_BY_NAME}
local owner = ARGV[2]
-- pcall: a key of another type is the key of another owner.
local holder = redis.pcall('GET', lock)
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
${leave === '' ? ifAlone(channels) : ''}
${FUNCTIONS}${HAND_OVER_FUNCTION}
local process = processOf(owner)
-- The ticket of a holder left the queue when the lock was granted.
if holder ~= owner then forget(string.match(owner, '^(.*)@') or owner) end
hear(process)
local granted, token
local found = isOwners and 1 or holder and -1 or 0
if not holder then
  ${ifForced('owner', 'found = -1')}
end
${leave}
if isOwners or (not holder and pauseLeft() == 0) then
  granted, token = handOver(process, nil, isOwners and ARGV[4])
  if not granted and redis.call('ZCARD', queue) == 0 then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  ${deleteBy('ARGV[3]')}
  found = deleted
  for i = ${channels}, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end
end
if type(granted) ~= 'string' then granted, token = '', '' end
local life = type(holder) == 'table' and 0 or lifeLeft()
return { found, granted, token, life, digits(now), refused and 1 or 0${due} }`,
    isFound,
  );
}
