import { LockScript, Script } from '../../redis/script';
import { isConfirmed, isFound, isGrant } from '../format/replies';
import { ifForced } from '../inspection/forced-unlock';
import { ASK, ASSERT_WRITABLE, deleteBy, EXTEND, returnWithListeners } from '../spring/spring-scripts';

/*
 * The lock as a hash key, in the format of Redisson's locks: one field "<uuid>:<number>", which is the owner; its value
 * is the number of holds of the owner; the key always has an expiry. Redisson compares owners only with its own, so
 * ours may differ with every acquisition. The value is always 1: the scripts set it and do not count, so they are
 * idempotent.
 */

/** For the scripts that inspect a lock: Lua that reads the owner. */
export const OWNER_OF_HASH = `redis.call('HKEYS', KEYS[1])[1]`;

/** The body of the message about a release. Redisson decodes it as a number; anything else breaks its decoder. */
export const UNLOCKED = '0';

/** The body of the message that a lock is left to pollers. Redisson knows 0 and 1, and ignores it. */
export const LEFT_TO_POLLERS = '2';

/**
 * What KEYS[1] is to ARGV[1]. Sets `owned`: 1 its own, 0 no key, -1 another owner's; a key of another type counts as
 * another owner's. Any other error is returned as the script's reply.
 */
export const OWNED = `
local owned = redis.pcall('HEXISTS', KEYS[1], ARGV[1])
if type(owned) == 'table' then
  if not string.find(owned.err, 'WRONGTYPE', 1, true) then return owned end
  owned = -1
elseif owned == 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  owned = -1
end`;

/**
 * After `OWNED`: there is no key. A lock that was unlocked by force counts as another owner's, since it did not expire.
 */
export const EXAMINE_GONE = `
if owned == 0 then
  ${ASSERT_WRITABLE}
  ${ifForced('ARGV[1]', 'owned = -1')}
end`;

/**
 * Publishes a release, or another message, with `command`, PUBLISH or SPUBLISH. Sets `heard`: the number of connections
 * that got the message, or -1 where that is not known. pcall: else a user without rights on channels could not release,
 * and servers before 7 have no SPUBLISH.
 */
export const publishRelease = (command: string, channel: string, message = UNLOCKED) => `
local heard = redis.pcall(${command}, ${channel}, '${message}')
if type(heard) == 'table' and ${command} == 'SPUBLISH' then heard = redis.pcall('PUBLISH', ${channel}, '${message}') end
if type(heard) == 'table' then heard = -1 end`;

/** Makes KEYS[1] the lock of ARGV[1] for ARGV[2] ms. */
export const HOLD = `
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** The fencing token of a lock that its owner has already; 1 without fencing. */
const LAST_TOKEN = `KEYS[2] and tonumber(redis.call('GET', KEYS[2])) or 1`;

/** KEYS[1] is the owner's already: a reply was lost. A late repetition must not shorten a renewed life. */
export const PROLONG = `
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end`;

/**
 * Acquires a lock.
 *
 * KEYS: lock [, token]
 * ARGV: owner, ttl in ms
 * Returns 1, or with a token key the token, when the lock is the owner's; else { life of the holder's key in ms, its
 * owner }.
 */
export const ACQUIRE = new LockScript(
  'acquire (redisson)',
  `
if redis.call('EXISTS', KEYS[1]) == 0 then
  ${HOLD}
  return KEYS[2] and redis.call('INCR', KEYS[2]) or 1
end
-- Not by pcall: a key of another type is an error that waiting does not mend.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return { redis.call('PTTL', KEYS[1]), redis.call('HKEYS', KEYS[1])[1] }
end
${PROLONG}
return ${LAST_TOKEN}`,
  undefined,
  isGrant,
);

/**
 * Releases a lock and publishes that it is free.
 *
 * KEYS: lock
 * ARGV: owner, command that deletes, PUBLISH or SPUBLISH, channel
 * Returns as the script of spring: 1 or 2 deleted, as { 1 or 2, listeners } where there are listeners; 0 no key; -1 the
 * key of another owner.
 */
export const RELEASE = release('release (redisson)');

/**
 * Publishes that a lock is free, if it is. Changes nothing.
 *
 * KEYS: lock
 * ARGV: PUBLISH or SPUBLISH, channel
 * Returns the number of connections that got the message, -1 where that is not known.
 */
export const NOTIFY = new Script(
  'notify (redisson)',
  `
if redis.call('PTTL', KEYS[1]) ~= -2 then return 0 end
${publishRelease('ARGV[1]', 'ARGV[2]')}
return heard`,
);

/** As `RELEASE`, but publishes that the lock is left to pollers. Arguments and reply are the same. */
export const LEAVE = release('leave to pollers (redisson)', LEFT_TO_POLLERS);

function release(name: string, message?: string): LockScript {
  return new LockScript(
    name,
    `${OWNED}${EXAMINE_GONE}
if owned ~= 1 then return owned end
${deleteBy('ARGV[2]')}
${publishRelease('ARGV[3]', 'ARGV[4]', message)}${returnWithListeners('deleted')}`,
    isFound,
  );
}

/**
 * Confirms a hold for the next caller of its process. Where it is said how many listeners are its own, it is released
 * when others listen too.
 *
 * KEYS: lock [, token]
 * ARGV: owner, ttl in ms [, listeners of our own, command that deletes, PUBLISH or SPUBLISH, channel]
 * Returns as the script of spring: 1 or the next token when the key is the owner's; { 1 or 2 deleted, listeners } when it
 * was released; { 0 } no key; { -1 } the key of another owner.
 */
export const CONFIRM_OR_RELEASE = new LockScript(
  'confirm or release (redisson)',
  `${OWNED}${EXAMINE_GONE}
if owned ~= 1 then return { owned } end
if ARGV[3] then
  ${publishRelease('ARGV[5]', 'ARGV[6]')}
  -- Where the number of listeners is not known, others may listen.
  if heard == -1 or heard > tonumber(ARGV[3]) then
    ${deleteBy('ARGV[4]')}
    return { deleted, heard }
  end
end
-- In any case: out of memory, Redis refuses INCR to a script that has not written yet.
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[2]))
return KEYS[2] and redis.call('INCR', KEYS[2]) or 1`,
  isConfirmed,
);

/** The start of a script that renews: goes on if KEYS[1] is the key of ARGV[1], and returns otherwise. */
const RETURN_UNLESS_OWNED = `${OWNED}${EXAMINE_GONE}
if owned ~= 1 then return owned end`;

/**
 * Renews a lock.
 *
 * KEYS: lock
 * ARGV: owner, ttl in ms
 * Returns as the script of spring: 1 the key has the ttl; { life in ms }; 0 no key; -1 the key of another owner.
 */
export const RENEW = new LockScript('renew (redisson)', `${RETURN_UNLESS_OWNED}${EXTEND}`, isFound);

/**
 * Asks whether a lock is still the owner's, without extending it.
 *
 * KEYS: lock
 * ARGV: owner, ttl in ms for a key that has lost its expiry
 * Returns as the script that renews.
 */
export const CONFIRM = new LockScript('confirm (redisson)', `${RETURN_UNLESS_OWNED}${ASK}`, isFound);
