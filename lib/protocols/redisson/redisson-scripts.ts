import { lockScripts } from '../format/lock-scripts';
import { HASH_HELD } from '../format/script-parts';

/*
 * The lock as a hash key, in the format of Redisson's locks: one field "<uuid>:<number>", which is the owner; its value
 * is the number of holds of the owner; the key always has an expiry. Redisson compares owners only with its own, so
 * ours may differ with every acquisition. The value is always 1: the scripts set it and do not count, so they are
 * idempotent.
 */

/** The body of the message about a release. Redisson decodes it as a number; anything else breaks its decoder. */
export const UNLOCKED = '0';

/** The body of the message that a lock is left to pollers. Redisson knows 0 and 1, and ignores it. */
export const LEFT_TO_POLLERS = '2';

/**
 * Publishes a message with `command`, PUBLISH or SPUBLISH. See `OwnerFormat`. Servers before 7 have no SPUBLISH. All in
 * Lua.
 */
export const publishOn = (command: string, channel: string, message = UNLOCKED) => `
local heard = redis.pcall(${command}, ${channel}, '${message}')
if type(heard) == 'table' and ${command} == 'SPUBLISH' then heard = redis.pcall('PUBLISH', ${channel}, '${message}') end
if type(heard) == 'table' then heard = -1 end`;

/** Makes `lock` that of `owner` for `ttl` ms. */
export const TAKE = `
redis.call('HSET', lock, owner, 1)
redis.call('PEXPIRE', lock, ttl)`;

/** `lock` is the owner's already: a reply was lost. A late repetition must not shorten a renewed life. */
export const PROLONG = `
if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end`;

/** See `OwnerFormat`. To keep it, the new field comes before the old one goes: a hash without fields is deleted. */
export const HASH = {
  held: HASH_HELD,
  holder: "redis.call('HKEYS', KEYS[1])[1]",
  isKept: "redis.pcall('HEXISTS', lock, kept) == 1",
  keep: `
redis.call('HSET', lock, kept, 1)
redis.call('HDEL', lock, owner)`,
};

/** The fence is a counter that Redisson's fenced locks have too. */
export const REDISSON_SCRIPTS = lockScripts('redisson', {
  acquire: `
local lock, owner, ttl = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', lock) == 0 then
  ${TAKE}
  return KEYS[2] and redis.call('INCR', KEYS[2]) or 1
end
-- Not by pcall: a key of another type is an error that waiting does not mend.
if redis.call('HEXISTS', lock, owner) == 0 then return { redis.call('PTTL', lock), redis.call('HKEYS', lock)[1] } end
${PROLONG}
return KEYS[2] and tonumber(redis.call('GET', KEYS[2])) or 1`,
  ...HASH,
  publish: (first, message) => publishOn(`ARGV[${first}]`, `ARGV[${first + 1}]`, message),
  leftToPollers: LEFT_TO_POLLERS,
  beforeToken: '',
  token: "return KEYS[2] and redis.call('INCR', KEYS[2]) or 1",
});
