import type { Keep } from '../../core/protocol';
import { IN_LUA } from '../../redis/server-errors';

/*
 * Parts of scripts, in Lua, that several lock types have in common. They are inserted as text and not called as Lua
 * functions: Lua creates a function anew at every run, which costs the server as much as a command.
 *
 * Every script is idempotent: a sentinel client repeats a command whose reply was lost. A script reads before it writes,
 * or tries a single write first, so that one that the server refuses has written nothing.
 *
 * Out of memory, Redis refuses a write that needs memory to a script that has not written yet. Where that must not stop a
 * script, a write that changes nothing comes first.
 *
 * An expiry comes after every other write to its key, or with it, as by SET. Before Redis 7.2, PEXPIRE reads the clock
 * twice, and deletes a key whose ms pass in between. A later write would make that key anew, without an expiry.
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

/**
 * Microseconds; a block of tokens ends so long after the server's time, at most. Each lease takes longer than a
 * microsecond: so the clock keeps up with the tokens that leases get, and they rise by it alone if the counter is lost.
 */
export const MOST_AHEAD = 1_000;

/**
 * Mints tokens for leases that follow each other: as `mint` for the first one, and each of the others is one higher.
 * Returns the first, and after a space how many they are if there are several. `most`: the most that are of use.
 *
 * Only the holder of a lock mints, so nobody else has one of them. The counter is the last one. Where it is ahead of the
 * server's clock already, there are fewer.
 */
export const mintBlock = (fence: string, most: string) => `
local now = time[1] * 1000000 + time[2]
local first = math.max((tonumber(last) or 0) + 1, now)
local count = math.max(1, math.min(${most}, now + ${MOST_AHEAD} - first))
redis.call('SET', ${fence}, string.format('%.0f', first + count - 1), 'PX', ${FENCE_TTL})
return string.format(count > 1 and '%.0f %.0f' or '%.0f', first, count)`;

/** Sets `now`: epoch ms, by the clock of the server. */
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

export const DIGITS = `
-- Lua prints at most 14 digits by itself.
local function digits(number) return string.format('%.0f', number) end`;

/** `lock` is the owner's already: a reply was lost. A late repetition must not shorten a renewed life. */
export const PROLONG = `
if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end`;

/** Deletes the keys. Sets `deleted`: 1, or 2 where the command was refused and DEL did it. */
export const deleteBy = (command: string, keys = 'KEYS[1]') => `
local deleted = 1
if type(redis.pcall(${command}, ${keys})) == 'table' then
  redis.call('DEL', ${keys})
  deleted = 2
end`;

/*
 * Whether `lock` is `owner`'s: what follows sets `state` to 'expired' or 'stolen', and leaves it nil where it is. An
 * error of the server that says nothing of it is the script's reply.
 */

/**
 * For a lock that is not there: a replica may be behind, and says nothing. READONLY is the script's reply then.
 * `write`: a command that writes, and changes nothing.
 */
export const examineGone = (write: string) => `
local written = redis.pcall(${write})
if type(written) == 'table' and string.find(written.err, '${IN_LUA.readOnly}', 1, true) then return written end
state = 'expired'`;

/** What is examined of a lock whose key is not there at all. */
const EXAMINE_GONE = examineGone("'PEXPIRE', lock, 1");

/** Another error than that of a key of another type, which is another owner's, is the script's reply. */
export const EXAMINE_ERROR = `
if not string.find(found.err, '${IN_LUA.wrongType}', 1, true) then return found end
state = 'stolen'`;

/** For a string key, whose value is the owner. */
export const STRING_HELD = `
local found = redis.pcall('GET', lock)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif not found then ${EXAMINE_GONE}
elseif found ~= owner then state = 'stolen' end`;

/** For a hash key, which has the owner as its field. */
export const HASH_HELD = `
local found = redis.pcall('HEXISTS', lock, owner)
if type(found) == 'table' then ${EXAMINE_ERROR}
elseif found == 0 and redis.call('EXISTS', lock) == 0 then ${EXAMINE_GONE}
elseif found == 0 then state = 'stolen' end`;

/** The three numbers of a `Keep`, as the scripts take them. */
export function keepArguments({ left, minHold, ttl }: Keep): string[] {
  return [String(left), String(minHold), String(ttl)];
}

/**
 * Sets `left`: ms for which the key is kept from now on. `keepFor`, `minHold`, `ttl`: the numbers of a `Keep`, in Lua.
 *
 * What is left of the key's ttl shows how long ago the key was given it, by the server's clock. That is more exact than
 * the local clock, since no time passes on the way. A renewal makes the key look younger: this estimate is too long
 * then. The local clock misses a suspension of the machine, and the time in which a grant was not read: its estimate is
 * too long then. Neither is ever too short, so the smaller one is used. `age`: Lua that finds the age of the grant in
 * ms, where it shows otherwise.
 */
export const leftToKeep = (keepFor: string, minHold: string, ttl: string, age?: string) => `
local left, remaining = tonumber(${keepFor}), redis.call('PTTL', KEYS[1])
local age = ${age === undefined ? '' : `${age} or `}remaining >= 0 and ${ttl} - remaining
if age then left = math.min(left, ${minHold} - age) end
left = string.format('%.0f', math.max(1, math.ceil(left)))`;
