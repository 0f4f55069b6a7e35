import { LockScript, Script } from '../../redis/script';
import { isConfirmed, isFound, isGrant } from '../format/replies';
import { ifForced } from '../inspection/forced-unlock';

/*
 * The lock as a string key, in the format of Spring Integration's RedisLockRegistry: the value is the owner, and the
 * key always has an expiry. Spring compares owners only with its own, so ours may differ with every acquisition: then
 * a late or repeated command of an earlier holder can never touch a later one.
 *
 * Every script is idempotent: a sentinel client repeats a command whose reply was lost. A script reads before it
 * writes, or tries a single write first, so that one that the server refuses has written nothing.
 *
 * Parts of scripts are inserted as text and not called as Lua functions: Lua creates a function anew at every run,
 * which costs the server as much as a command.
 */

/** ms; a fencing counter outlives its last use by a day. When it is gone, the server's time takes over. */
const FENCE_TTL = 24 * 60 * 60 * 1000;

/**
 * Mints a fencing token and returns it: max(last + 1, server time in microseconds). It rises with every acquisition,
 * also after the counter was lost. Lua prints at most 14 digits by itself, hence string.format.
 * Needs `last`, the value of the counter, and `time`, the reply of TIME. `fence` is the counter's key, in Lua.
 */
export const mint = (fence: string) => `
local token = string.format('%.0f', math.max((tonumber(last) or 0) + 1, time[1] * 1000000 + time[2]))
redis.call('SET', ${fence}, token, 'PX', ${FENCE_TTL})
return token`;

/** Deletes KEYS[1]. Sets `deleted`: 1, or 2 where the command was refused and DEL did it. */
export const deleteBy = (command: string) => `
local deleted = 1
if type(redis.pcall(${command}, KEYS[1])) == 'table' then
  redis.call('DEL', KEYS[1])
  deleted = 2
end`;

/** The end of a script that gives a lock back, after `heard` was set. `found`: what it found, in Lua. */
export const returnWithListeners = (found: string) => `
if heard == 0 then return ${found} end
return { ${found}, heard }`;

/** The body of the message that a lock is left to pollers. A release is published as the lock's name. */
export const LEFT_TO_POLLERS = 'left to pollers';

/**
 * Publishes the lock's name, or another message, on the lock's channel. ARGV[channel] is that of the registry; with one
 * more argument on that too. Sets `heard`: the connections that got it, or -1 when the server refused to publish.
 * pcall: else a user without rights on channels could not release.
 */
export const publish = (channel: number, message = 'KEYS[1]') => `
local heard = redis.pcall('PUBLISH', ARGV[${channel}] .. ':' .. KEYS[1], ${message})
local legacy = ARGV[${channel + 1}] and redis.pcall('PUBLISH', ARGV[${channel}], ${message}) or 0
heard = type(heard) == 'number' and type(legacy) == 'number' and heard + legacy or -1`;

/** Raises READONLY on a replica, where a missing key says nothing since it may be behind. Does nothing elsewhere. */
export const ASSERT_WRITABLE = `redis.call('PEXPIRE', KEYS[1], 1)`;

/** There is no key. A lock that was unlocked by force counts as another owner's, since it did not expire. */
const RETURN_GONE = `
  ${ASSERT_WRITABLE}
  ${ifForced('ARGV[1]', 'return -1')}
  return 0`;

/** Sets `holder`, and returns if there is none. pcall: a key of another type is the key of another owner. */
export const READ_HOLDER = `
local holder = redis.pcall('GET', KEYS[1])
if not holder then ${RETURN_GONE}
end`;

/**
 * Acquires a lock.
 *
 * KEYS: lock [, fence]
 * ARGV: owner, ttl in ms
 * Returns 1, or with a fence the token as text, when the lock is the owner's; else { life of the holder's key, owner }.
 */
export const ACQUIRE = new LockScript(
  'acquire (spring)',
  `
-- Nearly always it is free. Why the server refused this shows below.
local set = not KEYS[2] and redis.pcall('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
if set and not set.err then return 1 end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return { redis.call('PTTL', KEYS[1]), holder } end
local last = KEYS[2] and redis.call('GET', KEYS[2])
local time = KEYS[2] and redis.call('TIME')
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  -- It is ours already: the reply of an earlier attempt was lost. A late repetition must not shorten a renewed life.
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
if not KEYS[2] then return 1 end
if last and holder then return last end
${mint('KEYS[2]')}`,
  undefined,
  isGrant,
);

/**
 * Releases a lock and publishes that it is free.
 *
 * KEYS: lock
 * ARGV: owner, command that deletes, what `publish` takes
 * Returns 1 deleted (2: by DEL, since the command was refused), as { 1 or 2, listeners } where there are listeners, -1
 * listeners when the server refused to publish; 0 no key; -1 the key of another owner.
 */
export const RELEASE = release('release (spring)');

/**
 * Publishes that a lock is free, if it is. Changes nothing.
 *
 * KEYS: lock
 * ARGV: what `publish` takes
 * Returns the number of connections that got the message, -1 when the server refused to publish.
 */
export const NOTIFY = new Script(
  'notify (spring)',
  `
if redis.call('PTTL', KEYS[1]) ~= -2 then return 0 end
${publish(1)}
return heard`,
);

/** As `RELEASE`, but publishes that the lock is left to pollers. Arguments and reply are the same. */
export const LEAVE = release('leave to pollers (spring)', `'${LEFT_TO_POLLERS}'`);

function release(name: string, message?: string): LockScript {
  return new LockScript(
    name,
    `${READ_HOLDER}
if holder ~= ARGV[1] then return -1 end
${deleteBy('ARGV[2]')}
${publish(3, message)}${returnWithListeners('deleted')}`,
    isFound,
  );
}

/**
 * Confirms a hold for the next caller of its process. With `listeners of our own`, releases it if there are others.
 *
 * KEYS: lock [, fence]
 * ARGV: owner, ttl in ms [, listeners of our own, command that deletes, what `publish` takes]
 * Returns 1, or with a fence the next token as text, when the key is the owner's and lives for the ttl at least; { 1 or 2
 * deleted, listeners } when it was released; { 0 } no key; { -1 } the key of another owner.
 */
export const CONFIRM_OR_RELEASE = new LockScript(
  'confirm or release (spring)',
  `
local holder = redis.call('GET', KEYS[1])
if not holder then
  ${ASSERT_WRITABLE}
  ${ifForced('ARGV[1]', 'return { -1 }')}
  return { 0 }
end
if holder ~= ARGV[1] then return { -1 } end
local last = KEYS[2] and redis.call('GET', KEYS[2])
local time = KEYS[2] and redis.call('TIME')
if ARGV[3] then
  ${publish(5)}
  if heard > tonumber(ARGV[3]) then
    ${deleteBy('ARGV[4]')}
    return { deleted, heard }
  end
end
-- In any case: out of memory, Redis refuses SET to a script that has not written yet.
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ARGV[2]))
if not KEYS[2] then return 1 end
${mint('KEYS[2]')}`,
  isConfirmed,
);

/** The end of a script that renews or asks: a key whose life is below `least` gets ARGV[2] ms. `least` in Lua. */
const prolong = (least: string) => `
local life = redis.call('PTTL', KEYS[1])
if life < ${least} then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
return { life }`;

/**
 * The end of a script that renews: KEYS[1] is the owner's. Makes it live at least ARGV[2] ms. Never shortens its life.
 * Returns 1, or { life in ms } where it lives longer.
 */
export const EXTEND = prolong('tonumber(ARGV[2])');

/** The end of a script that only asks: a key that has lost its expiry gets ARGV[2] ms again. Returns as EXTEND. */
export const ASK = prolong('0');

/** The start of a script that renews: goes on if KEYS[1] is the key of ARGV[1], and returns otherwise. */
export const RETURN_UNLESS_OWNED = `${READ_HOLDER}
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then return holder end
if holder ~= ARGV[1] then return -1 end`;

/**
 * Renews a lock.
 *
 * KEYS: lock
 * ARGV: owner, ttl in ms
 * Returns 1 the key has the ttl; { life in ms } it lives longer; 0 no key; -1 the key of another owner.
 */
export const RENEW = new LockScript('renew (spring)', `${RETURN_UNLESS_OWNED}${EXTEND}`, isFound);

/**
 * Asks whether a lock is still the owner's, without extending it.
 *
 * KEYS: lock
 * ARGV: owner, ttl in ms for a key that has lost its expiry
 * Returns as the script that renews.
 */
export const CONFIRM = new LockScript('confirm (spring)', `${RETURN_UNLESS_OWNED}${ASK}`, isFound);
