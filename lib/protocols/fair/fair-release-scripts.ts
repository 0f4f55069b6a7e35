import { LockScript } from '../../redis/script';
import { isFound, isGrant } from '../format/replies';
import { deleteBy, ifForced, mint } from '../format/script-parts';
import { publish } from '../spring/spring-scripts';
import {
  ENQUEUE_FUNCTION,
  FUNCTIONS,
  HAND_OVER_FUNCTION,
  KEYS_BY_NAME,
  NOW,
  SCORE,
  WRITE_NOTHING,
} from './fair-script-parts';

/*
 * The scripts that end a lease of the fair lock, or take a ticket out of its queue. See fair-scripts.ts for the keys.
 *
 * Their reply, where it is a table: { 1 or 2 it was the owner's, 0 no key, -1 the key of another owner; the owner
 * value, if the lock was granted to a ticket of the process that runs the script, else ''; its token, ms until another
 * attempt is worth it (see `lifeLeft`), server time, 1 when the server refused to publish, score of the next ticket or
 * '' }.
 */

/** The next caller of the process has the lock. `reply`: what a lock without a fence returns. */
const handOverAtOnce = (reply: 1 | 2) => `
  local last = fence and redis.call('GET', fence)
  local time = fence and redis.call('TIME')
  if redis.pcall('SET', lock, next, 'PX', ttl).err then
    -- Out of memory, Redis refuses SET to a script that has not written yet.
    redis.call('PEXPIRE', lock, ttl)
    redis.call('SET', lock, next, 'PX', ttl)
  end
  if not fence then return ${reply} end
  ${mint('fence')}`;

/** An earlier run, whose reply was lost, has handed the lock over, or has given the next ticket its position. */
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

/** The next caller of the process gets its position. */
const ENQUEUE_NEXT = `
if score then
  ${WRITE_NOTHING}
  score = digits(score)
  enqueue(next, ttl, score, how, life)
end`;

/**
 * Leaves the lock to pollers, if a pause is due. `publishRelease`: for the waiters of `spin` and `pub-sub`
 * under the same name, and of Spring. They have no ticket, so no hand-over is ever for them. The waiters of `fair`
 * learn when the pause ends. Sets `due`: ms until the next pause.
 */
const pauseIfDue = (publishRelease: string) => `
local pause = tonumber(ARGV[6])
local left = pauseEnd()
local due = left and math.ceil(tonumber(ARGV[7]) - pause - (now - left) / 1000) or 0
if isOwners and due <= 0 then
  ${deleteBy('ARGV[2]')}
  redis.call('HSET', tickets, 'pause', digits(now + pause * 1000))
  if redis.call('PTTL', tickets) < 0 then redis.call('PEXPIRE', tickets, 10 * math.ceil(pause)) end
  ${publishRelease}
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first then notify(processOf(first), lock) else redis.call('PEXPIRE', tickets, math.ceil(pause)) end
  return { deleted, '', '', pause, digits(now), refused and 1 or 0, score or '', 0 }
end`;

/**
 * The next caller of the process called before all that wait in the queue. It needs no position then. But the others have
 * to know its process: to them, a holder that never had a ticket may be a poller. Sets `ahead`: the first ticket, where
 * the next caller called after it.
 */
const HAND_OVER_IF_FIRST = `
local ahead
if isOwners then
  local firstScore = tonumber(first[2])
  if score > firstScore then
    ahead = first[1]
  elseif score < firstScore and redis.call('HGET', tickets, string.match(owner, '^(.*):')) then
    ${handOverAtOnce(2)}
  end
end`;

/** What a script does where nobody waits in the queue; it needs no functions then. */
const AT_ONCE = {
  release: (publishRelease: string) => `
if isOwners and redis.call('EXISTS', queue, tickets) == 0 then
  ${deleteBy('ARGV[2]')}
  ${publishRelease}
  return deleted
end`,
  'hand over': () => `
local first = isOwners and redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
if first and not first[1] then ${handOverAtOnce(1)}
end`,
  leave: () => '',
} as const;

/**
 * Releases a lock and hands it over to the first ticket in the queue; takes a ticket out of the queue. With a ticket it
 * also releases any grant of that ticket.
 *
 * ARGV: owner or ticket, command that deletes, PUBLISH or SPUBLISH, what `publish` of spring takes
 * Returns 1 or 2 when the lock was the owner's and there were no waiters (2: deleted by DEL); else a table.
 */
export const RELEASE = release('release (fair)', 'release');

/**
 * Releases a lock for the next caller of the same process. The lock goes to the earliest caller whose process can be
 * reached: that one, or one of the queue. In the second case, the next caller has a position in the queue afterwards.
 *
 * ARGV: owner or ticket, command that deletes; as one text: PUBLISH or SPUBLISH, how the process is notified, ms until
 * it is taken for dead, microseconds since the next caller's call; ticket of that caller, its ttl in ms, what `publish`
 * of spring takes
 * Returns 1 when the lock is the next ticket's and there were no others, 2 when it is and others wait; with a fence the
 * token as text in both cases; else a table.
 */
export const HAND_OVER = release('hand over (fair)', 'hand over');

/**
 * Releases a lock. If the last pause is long ago, it leaves the lock to pollers: it publishes a release to waiters of
 * `spin` and `pub-sub`, and asks the first waiter in the queue to poll, so that it learns when the pause ends. Without
 * waiters in the queue, `tickets` expires with the pause. Otherwise it hands the lock over.
 *
 * ARGV: as HAND_OVER; without a next caller, PUBLISH or SPUBLISH alone, and '' as ticket and as ttl; before what
 * `publish` takes: ms of the pause, ms from one pause to the next
 * Returns a table, with one more value: 0 when the lock was left to pollers, or ms until the next pause is due. A
 * repetition whose first reply was lost has no such value.
 */
export const LEAVE = release('leave to pollers (fair)', 'leave');

/**
 * The script, of parts in this order. `kind`: what it does where the lock is the owner's.
 *
 *   KEYS_BY_NAME           lock, queue, tickets, fence
 *   head                   owner; next, ttl: of the next caller (not `release`); holder; isOwners
 *   AT_ONCE                may return: nobody waits. `release` sets `deleted`
 *   ARGV[3]                publish; how, life, age: of the next caller
 *   NOW                    time, now
 *   SCORE                  score: the position of the next caller (not `release`)
 *   HAND_OVER_IF_FIRST     may return; sets `ahead` (`hand over` only)
 *   FUNCTIONS and others   `refused`, which `notify` sets; functions
 *   RETURN_IF_REPEATED     may return (not `release`)
 *   body                   granted, token, left (ms); found
 *   pauseIfDue             `leave` only: pause, due; may return
 */
function release(name: string, kind: keyof typeof AT_ONCE): LockScript {
  const mayHaveNext = kind !== 'release';
  const publishRelease = publish({ release: 4, 'hand over': 6, leave: 8 }[kind]);
  const script = `${KEYS_BY_NAME}
local owner = ARGV[1]
${mayHaveNext ? 'local next, ttl = ARGV[4], ARGV[5]' : ''}
-- pcall: a key of another type is the key of another owner.
local holder = redis.pcall('GET', lock)
local isOwners = holder == owner or (type(holder) == 'string' and string.match(holder, '^(.*)@') == owner)
${AT_ONCE[kind](publishRelease)}
local publish, how, life, age = string.match(ARGV[3], '^(%S+) ?(%S*) ?(%S*) ?(%S*)$')
${NOW}
local score
${mayHaveNext ? `if isOwners and next ~= '' then ${SCORE} end` : ''}
${kind === 'hand over' ? HAND_OVER_IF_FIRST : ''}
${FUNCTIONS}${HAND_OVER_FUNCTION}${mayHaveNext ? ENQUEUE_FUNCTION : ''}
local process = processOf(owner)
${mayHaveNext ? RETURN_IF_REPEATED : ''}
-- The ticket of a holder is not in the queue.
if not isOwners then forget(string.match(owner, '^(.*)@') or owner) end
local granted, token, left
local found = isOwners and 1 or holder and -1 or 0
if not holder then
  ${ifForced('owner', 'found = -1')}
end
${mayHaveNext ? ENQUEUE_NEXT : ''}
${kind === 'leave' ? pauseIfDue(publishRelease) : ''}
if isOwners or (not holder and pauseLeft() == 0) then
  granted, token, left = handOver(process${mayHaveNext ? ', isOwners and next' : ''}${kind === 'hand over' ? ', ahead' : ''})
  if not granted and redis.call('ZCARD', queue) == 0 then redis.call('DEL', tickets) end
end
if isOwners and not granted then
  ${deleteBy('ARGV[2]')}
  found = deleted
  ${publishRelease}
end
if type(granted) ~= 'string' then granted, token = '', '' end
local remaining = left or type(holder) == 'table' and 0 or lifeLeft()
return { found, granted, token, remaining, digits(now), refused and 1 or 0, score or ''${kind === 'leave' ? ', math.max(1, due)' : ''} }`;
  if (!mayHaveNext) return new LockScript(name, script, isFound);
  return new LockScript(name, script, undefined, kind === 'leave' ? isHandedOver : isGrantedToNext);
}

/** Whether a table says that the lock is granted to a ticket of the process. */
function isHandedOver(reply: unknown): boolean {
  return Array.isArray(reply) && reply[1] !== '';
}

/** The same for HAND_OVER, which returns no table where the next caller comes before all that wait. */
function isGrantedToNext(reply: unknown): boolean {
  return isGrant(reply) || isHandedOver(reply);
}
