import { LockScript } from '../../redis/script';
import { isFound, isGrant } from '../format/format';
import { ifForced } from '../inspection/forced-unlock';
import { deleteBy, mint } from '../spring/spring-scripts';
import { ENQUEUE_FUNCTION, FUNCTIONS, HAND_OVER_FUNCTION, KEYS_BY_NAME } from './fair-script-parts';

/*
 * The scripts that end a lease of the fair lock, or take a ticket out of its queue. See fair-scripts.ts for the keys.
 *
 * Their reply, where it is a table: { 1 or 2 it was the owner's, 0 no key, -1 the key of another owner; the owner value,
 * if the lock was granted to a ticket of the process that runs the script, else ''; its token, life of the lock's key in
 * ms, server time, 1 when the server refused to publish, score of the next ticket or '' }.
 */

/** Nobody waits in the queue: the next caller of the process has the lock. */
const HAND_OVER_AT_ONCE = `
  local last = fence and redis.call('GET', fence)
  local time = fence and redis.call('TIME')
  -- PEXPIRE first: out of memory, Redis refuses SET to a script that has not written yet.
  redis.call('PEXPIRE', lock, ttl)
  redis.call('SET', lock, next, 'PX', ttl)
  if not fence then return 1 end
  ${mint('fence')}`;

/** An earlier run has done it: its reply was lost. */
const RETURN_IF_REPEATED = `
if not isOwners and next ~= '' then
  local position = redis.call('ZSCORE', queue, next)
  if holder == next or (type(holder) == 'string' and string.match(holder, '^(.*)@') == next) then
    if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
    forget(next)
    local token = tokenOf(holder)
    if token == '' then token = mint() end
    return { 1, holder, token, redis.call('PTTL', lock), digits(now), 0, '' }
  elseif position then
    return { 1, '', '', lifeLeft(), digits(now), 0, position }
  end
end`;

/** Leaves the lock to those that poll, if the last pause is long ago. `publish`: that the lock is free. */
const pauseIfDue = (publish: string) => `
local pause = tonumber(ARGV[9])
local left = redis.call('HGET', tickets, 'pause')
local due = left and math.ceil(tonumber(ARGV[10]) - pause - (now - left) / 1000) or 0
if isOwners and due <= 0 and redis.call('ZCARD', queue) > 0 then
  ${deleteBy('ARGV[3]')}
  redis.call('HSET', tickets, 'pause', digits(now + pause * 1000))
  if redis.call('PTTL', tickets) < 0 then redis.call('PEXPIRE', tickets, 10 * pause) end
  ${publish}
  notify(processOf(redis.call('ZRANGE', queue, 0, 0)[1]), lock)
  return { deleted, '', '', pause, digits(now), refused and 1 or 0, score or '', 0 }
end`;

/**
 * Releases a lock and hands it over to the first ticket in the queue; takes a ticket out of the queue. With a ticket it
 * also releases any grant of that ticket.
 *
 * ARGV: PUBLISH or SPUBLISH, owner or ticket, command that deletes, channels of spin and pub-sub
 * Returns 1 or 2 when the lock was the owner's and there were no waiters (2: deleted by DEL); else a table.
 */
export const RELEASE = release('release (fair)', { withNext: false, mayPause: false });

/**
 * Releases a lock for the next caller of the same process. It gets the lock if it called before
 * the callers of the tickets in the queue. Otherwise it gets a position there, and the first ticket gets the lock.
 *
 * ARGV: PUBLISH or SPUBLISH, owner or ticket, command that deletes, ticket of the next caller, its ttl in ms, microseconds
 * since its call, how its process is notified, ms until that is taken for dead, channels of spin and pub-sub
 * Returns 1, or with a fence the token as text, when the lock is the next ticket's and there were no others; else a table.
 */
export const HAND_OVER = release('hand over (fair)', { withNext: true, mayPause: false });

/**
 * Releases a lock. If tickets wait and the last pause is long ago, it leaves the lock to those that poll, and asks the
 * first waiter to poll too: it learns when the pause ends. Else it hands the lock over.
 *
 * ARGV: as for HAND_OVER, with '' in place of a next ticket where no caller is next; before the channels: ms of the
 * pause, ms from one pause to the next
 * Returns 1 or 2 as RELEASE; else a table, with a last value: 0 when the lock was left to pollers, or ms until it may be.
 */
export const LEAVE = release('leave to pollers (fair)', { withNext: true, mayPause: true });

/** Whether a table says that the lock is granted to a ticket of the process. */
function isHandedOver(reply: unknown): boolean {
  return Array.isArray(reply) && reply[1] !== '';
}

/** `withNext`: a caller of the same process may be next. `mayPause`: in place of a hand-over. */
function release(name: string, { withNext, mayPause }: { withNext: boolean; mayPause: boolean }): LockScript {
  const channels = 4 + (withNext ? 5 : 0) + (mayPause ? 2 : 0);
  const publish = `for i = ${channels}, #ARGV do redis.pcall('PUBLISH', ARGV[i], lock) end`;
  const next = withNext ? 'local next, ttl, age, how, life = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]' : '';
  const releaseAtOnce = `
  ${deleteBy('ARGV[3]')}
  ${publish}
  return deleted`;
  // A pause for pollers is due, or there is no next caller: then a release.
  const mayHandOver = withNext && !mayPause;
  return new LockScript(
    name,
    `${KEYS_BY_NAME}
local owner = ARGV[2]
${next}
-- pcall: a key of another type is the key of another owner.
local holder = redis.pcall('GET', lock)
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
if ${mayHandOver ? `isOwners and redis.call('EXISTS', queue) == 0` : `isOwners ${withNext ? `and next == '' ` : ''}and redis.call('EXISTS', queue, tickets) == 0`} then
  ${mayHandOver ? HAND_OVER_AT_ONCE : releaseAtOnce}
end
${FUNCTIONS}${HAND_OVER_FUNCTION}${withNext ? ENQUEUE_FUNCTION : ''}
local process = processOf(owner)
${withNext ? RETURN_IF_REPEATED : ''}
-- The ticket of a holder left the queue when the lock was granted.
if holder ~= owner then forget(string.match(owner, '^(.*)@') or owner) end
local granted, token, score
local found = isOwners and 1 or holder and -1 or 0
if not holder then
  ${ifForced('owner', 'found = -1')}
end
${withNext ? `if isOwners and next ~= '' then score = enqueue(next, ttl, '', age, how, life) end` : ''}
${mayPause ? pauseIfDue(publish) : ''}
if isOwners or (not holder and pauseLeft() == 0) then
  granted, token = handOver(process${withNext ? `, isOwners and next` : ''})
  if not granted and redis.call('ZCARD', queue) == 0 then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  ${deleteBy('ARGV[3]')}
  found = deleted
  ${publish}
end
if type(granted) ~= 'string' then granted, token = '', '' end
local life = type(holder) == 'table' and 0 or lifeLeft()
return { found, granted, token, life, digits(now), refused and 1 or 0, score or ''${mayPause ? ', math.max(1, due)' : ''} }`,
    withNext ? undefined : isFound,
    withNext ? (reply) => isHandedOver(reply) || (mayHandOver && isGrant(reply)) : undefined,
  );
}
