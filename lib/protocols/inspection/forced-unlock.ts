/*
 * A lock that was unlocked by force has no key any more, and neither has one that expired. So that its holder learns
 * which of the two it was, the forced unlock leaves a mark beside the lock, `{name}:forced`: the owner that had it. It
 * expires when the lock would have.
 *
 * Its name is made in Lua, where a script finds no key. To send it with every command would cost more than it is worth.
 * It is in the hash slot of the lock. A server or a user without access to it takes the lock for expired.
 */

/** ms; a mark for a lock that had no expiry. */
const WITHOUT_EXPIRY = 60_000;

/** Sets `mark`: the name of the mark of `lock`, as `LockNames.companion` makes it. */
export const mark = (lock: string) => `
local tag = string.match(${lock}, '^[^{]*{([^}]+)}')
local mark = tag and '{' .. tag .. '}:forced:' .. ${lock} or '{' .. ${lock} .. '}:forced'`;

/** Leaves the mark of `holder`, whose key had `remaining` ms left. */
export const LEAVE_MARK = `${mark('KEYS[1]')}
redis.pcall('SET', mark, holder, 'PX', remaining > 0 and remaining or ${WITHOUT_EXPIRY})`;

/** For a `lock` that is not there: runs `then` if it was unlocked by force while `owner` had it. All in Lua. */
export const ifForced = (owner: string, then: string, lock = 'KEYS[1]') => `${mark(lock)}
if redis.pcall('GET', mark) == ${owner} then ${then} end`;
