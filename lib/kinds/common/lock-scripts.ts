import { KEPT } from '../../api/owner-name';
import { LockScript, Script } from '../../redis/script';
import { inspectionScripts } from './inspector';
import { isFound, isGrant } from './replies';
import { deleteBy, leftToKeep } from './script-parts';

/*
 * The scripts about a lock that processes contend for. They are the same for all formats but for the parts below.
 *
 *   KEYS          lock; for ACQUIRE and CONFIRM_OR_RELEASE also the fence, with fencing
 *   notification  in ARGV: what `ScriptedFormat.notification` returns
 *   listeners     in a reply: the connections that got the message, or one of `LISTENERS`
 *
 * A script about a lock that is not the owner's returns 0 where there is no key, -1 where the key is another owner's.
 */

/** In place of their number: the server refused to publish; or it did, and others may listen too. */
export const LISTENERS = { refused: -1, uncounted: -2 } as const;

/** What the scripts of a format are made of, all in Lua. `lock` is the key, `owner` the owner value. */
interface OwnerFormat {
  readonly acquire: string;
  /** Finds whether the lock is the owner's: STRING_HELD or HASH_HELD. Reads who holds KEYS[1]. */
  readonly held: string;
  readonly holder: string;
  /** Whether the lock, which is not the owner's, is that of the owner `to`. Gives it to `to`, for `left` ms. */
  readonly isGiven: string;
  readonly give: string;
  /**
   * Publishes the release, or `message`. ARGV[first] to the last: notification. Sets `heard`: the listeners. pcall: else
   * a user without rights on channels could not release.
   */
  publish(first: number, message?: string): string;
  /** The message that a lock is left to pollers. */
  readonly leftToPollers: string;
  /**
   * Returns the next fencing tokens, or 1 without fencing. `most`: the most that are of use; nil without fencing. What it
   * needs is read before anything is written.
   */
  readonly beforeTokens: string;
  readonly tokens: string;
}

export type LockScripts = ReturnType<typeof lockScripts>;

/** Finds whether KEYS[1] is ARGV[1]'s. */
const examine = (held: string) => `
local lock, owner, state = KEYS[1], ARGV[1], nil
${held}`;

/** After `examine`: returns if it is not. */
const RETURN_UNLESS_HELD = `
if state then return state == 'expired' and 0 or -1 end`;

/** The end of a script that gives a lock back. `found`: what it found; `heard`: the listeners. */
export const returnWithListeners = (found: string, heard = 'heard') => `
if ${heard} == 0 then return ${found} end
return { ${found}, ${heard} }`;

export function lockScripts(name: string, format: OwnerFormat) {
  const { held, publish, leftToPollers } = format;
  const release = (what: string, message?: string) =>
    new LockScript(
      `${what} (${name})`,
      `${examine(held)}${RETURN_UNLESS_HELD}
${deleteBy('ARGV[2]')}
${publish(3, message)}${returnWithListeners('deleted')}`,
    );
  return {
    held,

    /**
     * Acquires a lock.
     *
     * ARGV: owner, ttl in ms
     * Returns 1, or with a fence the token, when the lock is the owner's; else { life of the holder's key in ms, its
     * owner }.
     */
    ACQUIRE: new LockScript(`acquire (${name})`, format.acquire, true, isGrant),

    /**
     * Renews a lock. Never shortens its life.
     *
     * ARGV: owner, ttl in ms
     * Returns 1 the key has the ttl; { life in ms } it lives longer.
     */
    RENEW: new LockScript(
      `renew (${name})`,
      `${examine(held)}${RETURN_UNLESS_HELD}
local ttl, life = tonumber(ARGV[2]), redis.call('PTTL', lock)
if life < ttl then
  redis.call('PEXPIRE', lock, ttl)
  return 1
end
return { life }`,
    ),

    /**
     * Confirms a hold for the next caller of its process. With `listeners of our own`, releases it if there are others, or
     * the mark of another process that waits.
     *
     * KEYS: as above; with `listeners of our own` the last one is the mark
     * ARGV: owner, ttl in ms [, the most tokens that are of use, '' without fencing [, listeners of our own, who leaves our
     * marks, command that deletes, notification]]
     * Returns 1, or with a fence the next tokens (see `mint`), when the key is the owner's and lives for the ttl at
     * least; else { what RELEASE returns, listeners [, ms between two polls of a waiter that no message reaches, or 0] }.
     */
    CONFIRM_OR_RELEASE: new LockScript(
      `confirm or release (${name})`,
      `${examine(held)}
if state then return { state == 'expired' and 0 or -1, 0 } end
local ttl, most, ownListeners = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
${format.beforeTokens}
if ownListeners then
  local mark = redis.pcall('GET', KEYS[#KEYS])
  local waiter, pollInterval = string.match(type(mark) == 'string' and mark or '', '^(.*) (%d+)$')
  local isWanted = waiter and waiter ~= ARGV[5]
  ${publish(7)}
  -- Where the number of listeners is not known, others may listen.
  if heard < 0 or heard > ownListeners or isWanted then
    ${deleteBy('ARGV[6]')}
    return { deleted, heard, isWanted and tonumber(pollInterval) or 0 }
  end
end
-- Out of memory: see script-parts.ts.
redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
${format.tokens}`,
    ),

    /**
     * Releases a lock and publishes that it is free.
     *
     * ARGV: owner, command that deletes, notification
     * Returns 1 deleted (2: by DEL, since the command was refused), as { 1 or 2, listeners } where there are listeners.
     */
    RELEASE: release('release'),

    /** What RELEASE does, but publishes `leftToPollers`. */
    LEAVE: release('leave to pollers', leftToPollers),
    leftToPollers,

    /**
     * Gives a lock back that has to stay taken until its `minHold` ends. Waiters are notified as of a release: their
     * next attempt tells them when the key ends.
     *
     * ARGV: owner, ms left by the local clock, minHold and ttl of the acquisition in ms, notification
     * Returns as RELEASE, with 1 for a lock that is kept.
     */
    KEEP: new LockScript(
      `keep (${name})`,
      `${keepUntilItsEnd(format, 2)}
${publish(5)}${returnWithListeners('1')}`,
    ),

    /**
     * Gives a lock another owner value, under which it can be adopted.
     *
     * ARGV: owner, the other value, ttl in ms
     * Returns 1 the lock has the other value, and lives for the ttl at least.
     */
    DETACH: new LockScript(
      `detach (${name})`,
      `${examineToGive(format)}
left = math.max(redis.call('PTTL', lock), tonumber(left))
if not isGiven then ${format.give} end
return 1`,
    ),

    /**
     * Gives a lock that was detached to the process that adopts it: an acquisition. The ttl counts from now on.
     * A late repetition does not shorten a renewed life.
     *
     * ARGV: the owner value under which it was detached, the new owner, ttl in ms
     * Returns 1, or with a fence the next token, when the lock is the new owner's.
     */
    ADOPT: new LockScript(
      `adopt (${name})`,
      `${examineToGive(format)}
local most = KEYS[2] and 1
${format.beforeTokens}
if isGiven then
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), left))
else ${format.give}
end
${format.tokens}`,
      false,
      isFound,
    ),

    /**
     * Publishes that a lock is free, if it is. Changes nothing.
     *
     * ARGV: notification
     * Returns the listeners.
     */
    NOTIFY: new Script(
      `notify (${name})`,
      `
if redis.call('PTTL', KEYS[1]) ~= -2 then return 0 end
${publish(1)}
return heard`,
    ),

    inspection: inspectionScripts(name, format.holder, undefined, publish(4)),
  };
}

/** Makes the lock that of nobody, until its `minHold` ends. ARGV[first]: the numbers of a `Keep`. */
export const keepUntilItsEnd = ({ held, isGiven, give }: Giving, first: number) => `
${examine(held)}
-- It is kept already: the reply was lost.
local to = '${KEPT}' .. owner
if state == 'stolen' and ${isGiven} then return 1 end
${RETURN_UNLESS_HELD}
${leftToKeep(`ARGV[${first}]`, `ARGV[${first + 1}]`, `ARGV[${first + 2}]`)}
${give}`;

type Giving = Pick<OwnerFormat, 'held' | 'isGiven' | 'give'>;

/** Before the lock is given to `to`. Sets `isGiven`: it is `to`'s already, and a reply was lost. */
const examineToGive = ({ held, isGiven }: Giving) => `
${examine(held)}
local to, left = ARGV[2], ARGV[3]
local isGiven = state == 'stolen' and ${isGiven}
if not isGiven then ${RETURN_UNLESS_HELD} end`;
