import { LockScript } from '../../redis/script';
import { isFound } from '../format/replies';
import { mint } from '../format/script-parts';
import { SPRING_SCRIPTS } from '../spring/spring-scripts';
import {
  ENQUEUE_FUNCTION,
  FUNCTIONS,
  HAND_OVER_FUNCTION,
  isGrantIn,
  KEYS_BY_NAME,
  NOW,
  OUTSIDER_FUNCTION,
  prolongQueue,
  SCORE,
  WANTED,
  WRITE_NOTHING,
} from './fair-script-parts';

/** A poll looks for processes that are gone only where `tickets` has this many fields more than its queue needs. */
const SPARE_FIELDS = 16;

export { CLAIM_WINDOW, type NotifiedBy, OUTSIDER, WANTED } from './fair-script-parts';

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
 * KEYS of every script: lock, queue, tickets [, fence]. An uncontended acquisition needs few of the arguments, and each
 * one costs the client and the server time: so several are one text, with spaces between them. Times of the server are
 * in microseconds. Every script is idempotent.
 */

/**
 * Acquires a lock, or takes a position in its queue.
 *
 * ARGV: ticket, ttl in ms, and as one text: PUBLISH or SPUBLISH, how the ticket's process is notified (NotifiedBy), ms
 * until the process is taken for dead unless it is heard of, microseconds since the caller's call, the ticket's first
 * score or ''
 * Returns 1, or with a fence the token as text, when the lock was free and there were no waiters; else { the owner
 * value, if the lock was granted to a ticket of the process that runs the script, OUTSIDER, or ''; its token, life of
 * the lock's key in ms, server time, score, who held it before or '' }.
 */
export const ACQUIRE = new LockScript(
  'acquire (fair)',
  `${KEYS_BY_NAME}
local ticket, ttl = ARGV[1], ARGV[2]
local hasWaiters = redis.call('EXISTS', queue, tickets) > 0
-- Nearly always the lock is free. If the server refuses this SET, a command below raises the error.
local set = not hasWaiters and not fence and redis.pcall('SET', lock, ticket, 'NX', 'PX', ttl)
if set and not set.err then return 1 end
local holder = redis.call('GET', lock)
if not holder and not hasWaiters then
  local time = fence and redis.call('TIME')
  local last = fence and redis.call('GET', fence)
  redis.call('SET', lock, ticket, 'PX', ttl)
  if not fence then return 1 end
  ${mint('fence')}
end
local publish, how, life, age, score = string.match(ARGV[3], '^(%S+) (%S+) (%S+) (%S+) (%S*)$')
${NOW}
${FUNCTIONS}${HAND_OVER_FUNCTION}${ENQUEUE_FUNCTION}${OUTSIDER_FUNCTION}
local process = processOf(ticket)
if holder and (holder == ticket or string.match(holder, '^(.*)@') == ticket) then
  -- It is granted already: the reply or the message was lost.
  if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
  forget(ticket)
  local token = tokenOf(holder)
  if token == '' then token = mint() end
  return { holder, token, redis.call('PTTL', lock), digits(now), score }
end
local owner, token, granted
if how == 'none' then
  -- A caller that does not wait is refused only while the lock is held, so it ignores a pause.
  if not holder then
    owner, token, granted = handOver(process)
    if not owner then
      -- No waiter can be reached.
      ${WRITE_NOTHING}
      redis.call('SET', lock, ticket, 'PX', ttl)
      owner, token, granted = ticket, mint(), tonumber(ttl)
    end
  end
else
  if score == '' then score = redis.call('ZSCORE', queue, ticket) end
  if score then
    -- The removal is a write too: see WRITE_NOTHING.
    forget(ticket)
  else
    ${SCORE}
    score = digits(score)
  end
  enqueue(ticket, ttl, score, how, life)
  local its = holder and processOf(holder)
  if not holder then
    if pauseLeft() == 0 then owner, token, granted = handOver(process, ticket) end
  elseif its and its ~= process then
    -- It passes the lock on among its own callers until it hears of others.
    notify(its, '${WANTED}')
  end
end
if type(owner) ~= 'string' then owner, token = outsider(holder, process), '' end
return { owner, token, granted or lifeLeft(), digits(now), score, holder or '' }`,
  undefined,
  isGrantIn,
);

/**
 * Polls for the waiters of one process: prolongs the life of the tickets that are in the queue, and hands a free lock
 * over. It never creates a ticket: a poll that is executed late must not leave one. A process that does not listen
 * as it says counts as one that polls.
 *
 * ARGV: process; as one text: PUBLISH or SPUBLISH, how the process is notified, ms until it is taken for dead; tickets
 * Returns { owner value if the lock belongs to a ticket of the process, OUTSIDER, or ''; its token or ''; life of the
 * lock's key in ms, or of a free lock until it may be handed over; server time; 1 when the process does not listen as
 * it says; who held the lock before or ''; positions among the tickets of those that are not in the queue }.
 */
export const POLL = new LockScript(
  'poll (fair)',
  `${KEYS_BY_NAME}
local process = ARGV[1]
local publish, how, life = string.match(ARGV[2], '^(%S+) (%S+) (%S+)$')
${NOW}
${FUNCTIONS}${HAND_OVER_FUNCTION}${OUTSIDER_FUNCTION}
local waiting = {}
for i = 3, #ARGV do waiting[#waiting + 1] = ARGV[i] end
local missing = {}
for i, ttl in ipairs(redis.call('HMGET', tickets, unpack(waiting))) do
  -- Eviction, or a command by hand, may have taken one of the two keys.
  if not ttl or not redis.call('ZSCORE', queue, waiting[i]) then missing[#missing + 1] = i end
end
local unreachable = 0
-- The server may have lost a connection that the process takes for open.
if how == 'message' and notify(process, 'poll') == 0 and not refused then
  unreachable = 1
  how = 'poll'
end
if #missing < #waiting then
  ${WRITE_NOTHING}
  redis.call('HSET', tickets, process, digits(now / 1000 + tonumber(life)) .. ':' .. how)
  ${prolongQueue('false')}
end
-- Processes that are gone: each leaves a field. The others are known by theirs, so it stays while they live.
if redis.call('HLEN', tickets) > 2 * redis.call('ZCARD', queue) + ${SPARE_FIELDS} then
  local fields = redis.call('HGETALL', tickets)
  for i = 1, #fields, 2 do
    local lifeEnd = string.match(fields[i + 1], '^(%d+):%a+$')
    if lifeEnd and tonumber(lifeEnd) * 1000 < now then redis.call('HDEL', tickets, fields[i]) end
  end
end
local owner, token, granted = redis.call('GET', lock), ''
local holder = owner or ''
if not owner then
  if pauseLeft() == 0 then owner, token, granted = handOver(process) end
elseif processOf(owner) == process then
  token = tokenOf(owner)
else
  owner = outsider(owner, process)
end
if type(owner) ~= 'string' then owner, token = '', '' end
return { owner, token, granted or lifeLeft(), digits(now), unreachable, holder, unpack(missing) }`,
);

/**
 * The first renewal of a grant by hand-over. It is the renewal of spring, but counts as an acquisition: with
 * `minReplicas`, replicas have to have it.
 *
 * KEYS: lock
 * ARGV: owner, ttl in ms
 * Returns as the script of spring.
 */
export const RENEW_GRANT = new LockScript('renew a grant (fair)', SPRING_SCRIPTS.RENEW.source, isFound, isFound);
