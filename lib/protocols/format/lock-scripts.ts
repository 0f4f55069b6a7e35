import { KEPT } from '../../owner-name';
import { LockScript, Script } from '../../redis/script';
import { isConfirmed, isFound } from './replies';
import { deleteBy, LEAVE_MARK, leftToKeep } from './script-parts';

/** What the scripts of a format are made of, all in Lua. `lock` is the key, `owner` the owner value. */
interface OwnerFormat {
  /** Finds whether the lock is the owner's: STRING_HELD or HASH_HELD. */
  readonly held: string;
  /** Reads who holds KEYS[1]: OWNER_OF_STRING or OWNER_OF_HASH. */
  readonly holder: string;
  /** Whether the lock is another owner's, `kept@<owner>`. */
  readonly isKept: string;
  /** Makes it so, for `left` ms. Its key expires then already. */
  readonly keep: string;
  /**
   * Publishes the release, or `message`. ARGV[first] to the last: what `ScriptedFormat.notification` returns. Sets
   * `heard`: the number of connections that got it, or -1 where that is not known. pcall: else a user without rights on
   * channels could not release.
   */
  publish(first: number, message?: string): string;
  readonly leftToPollers: string;
  /** Reads what `token` needs, before anything is written. */
  readonly beforeToken: string;
  /** Returns the next fencing token, or 1 without fencing. */
  readonly token: string;
}

/** The scripts of a format. All formats have the same KEYS, ARGV and replies, but for what `notification` adds to ARGV. */
export interface LockScripts {
  /**
   * Acquires a lock.
   *
   * KEYS: lock [, fence]
   * ARGV: owner, ttl in ms
   * Returns 1, or with a fence the token, when the lock is the owner's; else { life of the holder's key in ms, its owner }.
   */
  readonly ACQUIRE: LockScript;
  /**
   * Renews a lock, or only asks whether it is still the owner's. Never shortens its life.
   *
   * KEYS: lock
   * ARGV: owner, ttl in ms [, 'ask': only a key that has lost its expiry gets the ttl again]
   * Returns 1 the key has the ttl; { life in ms } it lives longer, or was only asked about; 0 no key; -1 the key of
   * another owner.
   */
  readonly RENEW: LockScript;
  /**
   * Confirms a hold for the next caller of its process. With `listeners of our own`, releases it if there are others.
   *
   * KEYS: lock [, fence]
   * ARGV: owner, ttl in ms [, listeners of our own, command that deletes, notification]
   * Returns 1, or with a fence the next token, when the key is the owner's and lives for the ttl at least; { 1 or 2
   * deleted, listeners } when it was released; { 0 } no key; { -1 } the key of another owner.
   */
  readonly CONFIRM_OR_RELEASE: LockScript;
  /**
   * Releases a lock and publishes that it is free.
   *
   * KEYS: lock
   * ARGV: owner, command that deletes, notification
   * Returns 1 deleted (2: by DEL, since the command was refused), as { 1 or 2, listeners } where there are listeners, -1
   * listeners where their number is not known; 0 no key; -1 the key of another owner.
   */
  readonly RELEASE: LockScript;
  /** As RELEASE, but publishes that the lock is left to pollers. */
  readonly LEAVE: LockScript;
  /**
   * Gives a lock back that has to stay taken until its `minHold` ends. Waiters are notified as of a release: their next
   * attempt tells them when the key ends.
   *
   * KEYS: lock
   * ARGV: owner, ms left by the local clock, minHold and ttl of the acquisition in ms, notification
   * Returns as RELEASE, with 1 for a lock that is kept.
   */
  readonly KEEP: LockScript;
  /**
   * Publishes that a lock is free, if it is. Changes nothing.
   *
   * KEYS: lock
   * ARGV: notification
   * Returns the number of connections that got the message, -1 where that is not known.
   */
  readonly NOTIFY: Script;
  readonly inspection: InspectionScripts;
}

/**
 * What a lock looks like, for people.
 *
 * KEYS: lock [, queue, for the types that have one] [, fence]
 */
export interface InspectionScripts {
  /**
   * ARGV: NUMSUB, SHARDNUMSUB or '', the channel whose listeners wait
   * Returns { owner or '', remaining ms of its key, last token or '', how many wait or -1 }.
   */
  readonly inspect: LockScript;
  /**
   * Deletes the lock if it still is the owner's that was inspected, and notifies the waiters. A client may repeat the
   * command whose reply was lost: the lock may be the next owner's by then.
   *
   * ARGV: owner, '', the command that deletes, and how the waiters are notified
   * Returns 1, or 0 for a lock that was not this owner's any more.
   */
  readonly forceUnlock: LockScript;
}

/** Lua that reads the owner. */
export const OWNER_OF_STRING = "redis.call('GET', KEYS[1])";
export const OWNER_OF_HASH = "redis.call('HKEYS', KEYS[1])[1]";

/** The acquisition that an owner value names, be it granted with a claim window, or kept. In Lua. */
const acquisitionOf = (owner: string) => `string.gsub(string.gsub(${owner}, '^${KEPT}', ''), '@%d+$', '')`;

/** pcall: a user without rights on it, or an old server, does not learn how many wait. */
const LISTENERS = `
if ARGV[1] ~= '' then
  local counted = redis.pcall('PUBSUB', ARGV[1], ARGV[2])
  if not counted.err then waiting = tonumber(counted[2]) end
end`;

/**
 * `holder`: Lua that reads the owner. `queue`: the command that counts the queue; `undefined`: there is none, and
 * listeners are counted. `notify`: Lua that notifies the waiters.
 */
export function inspectionScripts(
  type: string,
  holder: string,
  queue: string | undefined,
  notify: string,
): InspectionScripts {
  const inspect = `
local holder = ${holder}
local remaining = holder and redis.call('PTTL', KEYS[1]) or 0
local waiting = -1
${queue === undefined ? LISTENERS : `waiting = redis.call('${queue}', KEYS[2])`}
local fence = KEYS[${queue === undefined ? 2 : 3}]
local token = holder and fence and redis.call('GET', fence) or ''
return { holder or '', remaining, token, waiting }`;
  const forceUnlock = `
local holder = ${holder}
if not holder or ${acquisitionOf('holder')} ~= ${acquisitionOf('ARGV[1]')} then return 0 end
local remaining = redis.call('PTTL', KEYS[1])
${deleteBy('ARGV[3]')}
${LEAVE_MARK}
${notify}
return 1`;
  const found = (reply: unknown): boolean => Array.isArray(reply) && reply[0] !== '';
  return {
    inspect: new LockScript(`inspect (${type})`, inspect, found),
    forceUnlock: new LockScript(`unlock by force (${type})`, forceUnlock),
  };
}

/** Finds whether KEYS[1] is ARGV[1]'s. */
const examine = (held: string) => `
local lock, owner, state = KEYS[1], ARGV[1], nil
${held}`;

/** After `examine`: returns if it is not. */
const RETURN_UNLESS_HELD = `
if state then return state == 'expired' and 0 or -1 end`;

/** The end of a script that gives a lock back. `found`: what it found. */
const returnWithListeners = (found: string) => `
if heard == 0 then return ${found} end
return { ${found}, heard }`;

/** Makes the lock that of nobody, until its `minHold` ends. ARGV[first]: the numbers of a `Keep`. */
export const keepUntilItsEnd = (
  { held, isKept, keep }: Pick<OwnerFormat, 'held' | 'isKept' | 'keep'>,
  first: number,
) => `
${examine(held)}
-- It is kept already: the reply was lost.
local kept = '${KEPT}' .. owner
if state == 'stolen' and ${isKept} then return 1 end
${RETURN_UNLESS_HELD}
${leftToKeep(first)}
-- PEXPIRE first: out of memory, Redis refuses other writes to a script that has not written yet.
redis.call('PEXPIRE', lock, left)
${keep}`;

/** The scripts of a format, but for the one that acquires. */
export function lockScripts(name: string, format: OwnerFormat): Omit<LockScripts, 'ACQUIRE'> {
  const { held, holder, publish, beforeToken, token, leftToPollers } = format;
  const release = (what: string, message?: string) =>
    new LockScript(
      `${what} (${name})`,
      `${examine(held)}${RETURN_UNLESS_HELD}
${deleteBy('ARGV[2]')}
${publish(3, message)}${returnWithListeners('deleted')}`,
      isFound,
    );
  return {
    RENEW: new LockScript(
      `renew (${name})`,
      `${examine(held)}${RETURN_UNLESS_HELD}
local ttl, mode = tonumber(ARGV[2]), ARGV[3]
local life = redis.call('PTTL', lock)
if life < (mode == 'ask' and 0 or ttl) then
  redis.call('PEXPIRE', lock, ttl)
  return 1
end
return { life }`,
      isFound,
    ),
    CONFIRM_OR_RELEASE: new LockScript(
      `confirm or release (${name})`,
      `${examine(held)}
if state then return { state == 'expired' and 0 or -1 } end
local ttl, ownListeners = tonumber(ARGV[2]), tonumber(ARGV[3])
${beforeToken}
if ownListeners then
  ${publish(5)}
  -- Where the number of listeners is not known, others may listen.
  if heard == -1 or heard > ownListeners then
    ${deleteBy('ARGV[4]')}
    return { deleted, heard }
  end
end
-- In any case: out of memory, Redis refuses other writes to a script that has not written yet.
redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
${token}`,
      isConfirmed,
    ),
    RELEASE: release('release'),
    LEAVE: release('leave to pollers', leftToPollers),
    KEEP: new LockScript(
      `keep (${name})`,
      `${keepUntilItsEnd(format, 2)}
${publish(5)}${returnWithListeners('1')}`,
      isFound,
    ),
    NOTIFY: new Script(
      `notify (${name})`,
      `
if redis.call('PTTL', KEYS[1]) ~= -2 then return 0 end
${publish(1)}
return heard`,
    ),
    inspection: inspectionScripts(name, holder, undefined, publish(4)),
  };
}
