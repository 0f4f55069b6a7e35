import { KEPT } from '../../api/owner-name';
import type { Inspected, LockInspector } from '../../core/backend';
import { clock } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { LockScript, type Script } from '../../redis/script';
import { arrayIn, numberIn, remainingIn, textIn } from './replies';
import { deleteBy } from './script-parts';

/** The acquisition that an owner value names, be it granted with a claim window, or kept. In Lua. */
const acquisitionOf = (owner: string) => `string.gsub(string.gsub(${owner}, '^${KEPT}', ''), '@%d+$', '')`;

/** pcall: a user without rights on it, or an old server, does not learn how many wait. */
const LISTENERS = `
if ARGV[1] ~= '' then
  local counted = redis.pcall('PUBSUB', ARGV[1], ARGV[2])
  if not counted.err then waiting = tonumber(counted[2]) end
end`;

type InspectionScripts = ReturnType<typeof inspectionScripts>;

/**
 * What a lock looks like, for people. `holder`: Lua that reads the owner. `queue`: the command that counts the queue;
 * `undefined`: there is none, and listeners are counted. `notify`: Lua that notifies the waiters.
 */
export function inspectionScripts(type: string, holder: string, queue: string | undefined, notify: string) {
  return {
    /**
     * KEYS: lock [, fence], or of a type with a queue: lock, queue, another key [, fence]
     * ARGV: NUMSUB, SHARDNUMSUB or '', the channel whose listeners wait
     * Returns { owner or '', remaining ms of its key, last token or '', how many wait or -1 }.
     */
    inspect: new LockScript(
      `inspect (${type})`,
      `
local holder = ${holder}
local remaining = holder and redis.call('PTTL', KEYS[1]) or 0
local waiting = -1
${queue === undefined ? LISTENERS : `waiting = redis.call('${queue}', KEYS[2])`}
local fence = KEYS[${queue === undefined ? 2 : 4}]
local token = holder and fence and redis.call('GET', fence) or ''
return { holder or '', remaining, token, waiting }`,
    ),

    /**
     * Deletes the lock if it still is the owner's that was inspected, and notifies the waiters. A client may repeat the
     * command whose reply was lost: the lock may be the next owner's by then.
     *
     * KEYS: as above
     * ARGV: owner, '', '', and how the waiters are notified
     * Returns 1, or 0 for a lock that was not this owner's any more.
     */
    forceUnlock: new LockScript(
      `unlock by force (${type})`,
      `
local holder = ${holder}
if not holder or ${acquisitionOf('holder')} ~= ${acquisitionOf('ARGV[1]')} then return 0 end
-- By force: its holder did not ask for this.
${deleteBy("'UNLINK'")}
${notify}
return 1`,
    ),
  };
}

/** What the scripts are called with. */
interface InspectedFormat {
  keys(names: LockNames): string[];
  /** How the waiters are notified of a forced unlock: the last arguments. */
  notification(names: LockNames): readonly string[];
}

/**
 * Inspects the locks of a registry, and unlocks them by force. `listeners`: the command that counts those that wait, as
 * they listen, and their channel; `undefined`: the number is that of the queue, or not known.
 */
export function inspectorOf(
  redis: Redis,
  scripts: InspectionScripts,
  format: InspectedFormat,
  listeners?: (names: LockNames) => string[],
): LockInspector {
  const inspect = (names: LockNames, timeout: number): Promise<Found> => {
    const args = listeners?.(names) ?? ['', ''];
    return redis.run(scripts.inspect, format.keys(names), args, timeout, (reply) => read(scripts.inspect, reply));
  };
  const forceUnlock = async (names: LockNames, timeout: number): Promise<Found> => {
    const { forceUnlock: script } = scripts;
    const until = clock.now() + timeout;
    const found = await inspect(names, timeout);
    const owners = found.owners ?? found.owner;
    if (owners === undefined) return found;
    const args = [owners, '', '', ...format.notification(names)];
    const unlocked = (reply: unknown) => numberIn(script, reply, reply);
    await redis.run(script, format.keys(names), args, until - clock.now(), unlocked);
    return found;
  };
  return { inspect, forceUnlock };
}

interface Found extends Inspected {
  /** All that hold a shared lock, with spaces between them. */
  readonly owners?: string;
}

function read(script: Script, reply: unknown): Found {
  const [holder, pttl, token, waiting, holders, owners] = arrayIn(script, reply, 4, 6);
  const owner = textIn(script, reply, holder);
  // Another program may have written an empty text: nobody gets the lock then. A key that is there has time left.
  const isFree = owner === '' && remainingIn(script, reply, pttl) === 0;
  const count = numberIn(script, reply, waiting);
  if (!Number.isInteger(count) || count < -1) throw new UnexpectedReplyError(script.name, reply);
  return {
    owner: isFree ? undefined : owner,
    remaining: isFree ? 0 : remainingIn(script, reply, pttl),
    fencingToken: token === '' ? undefined : numberIn(script, reply, token),
    waiting: count < 0 ? undefined : count,
    ...(holders === undefined ? {} : { holders: numberIn(script, reply, holders) }),
    ...(owners === undefined || owners === '' ? {} : { owners: textIn(script, reply, owners) }),
  };
}
