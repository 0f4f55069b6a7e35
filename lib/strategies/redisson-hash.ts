import { Script } from '../redis/script';
import { EXTEND, NOBODYS } from './renewals';

/*
 * The lock as a hash key, in the format of Redisson's locks: one field "<uuid>:<number>", which is the owner, and its
 * value is how many holds the owner has; the key always has an expiry. Redisson compares owners only with its own, so
 * ours may differ with every acquisition, and the value is 1 at all times: the scripts set it and do not count, so that
 * one that is executed twice leaves no trace.
 */

/** ms; Redisson's lockWatchdogTimeout. */
export const REDISSON_WATCHDOG_TIMEOUT = 30_000;

/** Prefix of the channel on which a release is told. */
export const CHANNEL = 'redisson_lock__channel';

/** The body of the message that says so: Redisson decodes it as a number, and anything else breaks its decoder. */
export const UNLOCKED = '0';

/**
 * Prefix of the counter behind RFencedLock's tokens. It is shared with Java, so the rule is Redisson's: one more for
 * every acquisition, by whoever has tokens switched on; and the key is never deleted and has no expiry. Its tokens rise
 * as long as Redis keeps it: lost in a failover, or by eviction, it begins anew at 1. That is less than what the fence
 * of the string types guarantees, which the server's clock takes over from.
 */
export const TOKEN = 'redisson_lock_token';

/** The token of an acquisition, KEYS[i], where there is one: the next one, or with `last` the one that was minted. */
export const MINT = `
local function mint(i, last)
  if not KEYS[i] then return 1 end
  return last and redis.call('GET', KEYS[i]) or redis.call('INCR', KEYS[i])
end`;

/** Makes the lock the owner's. */
export const HOLD = `
local function hold(owner, ttl)
  redis.call('HSET', KEYS[1], owner, 1)
  redis.call('PEXPIRE', KEYS[1], ttl)
end

-- It is the owner's already: the reply of an earlier attempt was lost. A late repetition must not shorten a renewed life.
local function prolong(ttl)
  if redis.call('PTTL', KEYS[1]) < tonumber(ttl) then redis.call('PEXPIRE', KEYS[1], ttl) end
end`;

/** What the key is to an owner: 1 its own, 0 nobody's, -1 another's; so is a key of another type where ours was. */
export const WHOSE = `
local function whose(key, owner)
  local held = redis.pcall('HEXISTS', key, owner)
  if held == 1 then return 1 end
  if type(held) == 'table' then
    return string.find(held.err, 'WRONGTYPE', 1, true) and -1 or held
  end
  return redis.call('EXISTS', key) == 0 and 0 or -1
end`;

/**
 * Tells that the lock is free, by PUBLISH or SPUBLISH. Returns how many listen, and nothing where that is not to be
 * told. pcall: a user without rights on channels could not release otherwise, and servers before 7 have no SPUBLISH.
 */
export const TELL = `
local function tell(publish, channel)
  local heard = redis.pcall(publish, channel, '${UNLOCKED}')
  if type(heard) == 'number' then return heard end
  if publish == 'SPUBLISH' then redis.pcall('PUBLISH', channel, '${UNLOCKED}') end
end`;

/** As `Renewals` has it. */
export const RENEW = new Script(`${WHOSE}
local answers = {}
for i, key in ipairs(KEYS) do
  local owner, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local found = whose(key, owner)
  if type(found) == 'table' then
    answers[i] = found.err
  elseif found == 0 then
    ${NOBODYS}
  elseif found < 0 then
    answers[i] = -2
  else
    ${EXTEND}
  end
end
return answers`);
