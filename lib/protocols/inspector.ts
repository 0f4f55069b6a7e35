import type { Inspected, LockInspector } from '../core/backend';
import { clock } from '../internal/clock';
import { UnexpectedReplyError } from '../redis/failure';
import type { LockNames } from '../redis/names';
import type { Redis } from '../redis/redis';
import { arrayIn, numberIn, textIn } from '../redis/reply';
import type { Script } from '../redis/script';
import { type InspectionScripts, inspectionScripts, OWNER_OF_STRING } from './format/lock-scripts';
import { remainingIn } from './format/replies';
import type { ScriptedFormat } from './format/scripted-format';
import { publish } from './spring/spring-scripts';

/** How the locks of one type are inspected. */
interface InspectedType {
  readonly scripts: InspectionScripts;
  /** KEYS of the scripts. */
  keys(names: LockNames): string[];
  /** The channel whose listeners wait, and the command that counts them; `undefined`: not known. */
  listeners?(names: LockNames): readonly [command: string, channel: string];
  /** How the waiters are notified of a forced unlock: the last arguments. */
  notification(names: LockNames): readonly string[];
}

/** Inspects the locks of a registry, and unlocks them by force. Keeps nothing. */
export class Inspector implements LockInspector {
  readonly #redis: Redis;
  readonly #type: InspectedType;

  constructor(redis: Redis, type: InspectedType) {
    this.#redis = redis;
    this.#type = type;
  }

  inspect(names: LockNames, timeout: number): Promise<Found> {
    const { keys, listeners, scripts } = this.#type;
    const args = [...(listeners?.(names) ?? ['', ''])];
    return this.#redis.run(scripts.inspect, keys(names), args, timeout, (reply) => read(scripts.inspect, reply));
  }

  async forceUnlock(names: LockNames, timeout: number): Promise<Found> {
    const { keys, notification, scripts } = this.#type;
    const until = clock.now() + timeout;
    const found = await this.inspect(names, timeout);
    const owners = found.owners ?? found.owner;
    if (owners === undefined) return found;
    const args = [owners, '', '', ...notification(names)];
    const { forceUnlock } = scripts;
    await this.#redis.run(forceUnlock, keys(names), args, until - clock.now(), (reply) =>
      numberIn(forceUnlock, reply, reply),
    );
    return found;
  }
}

interface Found extends Inspected {
  /** Of a shared lock: all that hold it, with spaces between them. */
  readonly owners?: string;
}

function read(script: Script, reply: unknown): Found {
  const [holder, pttl, token, waiting, holders, owners] = arrayIn(script, reply, 4, 6);
  const owner = textIn(script, reply, holder);
  const count = numberIn(script, reply, waiting);
  if (!Number.isInteger(count) || count < -1) throw new UnexpectedReplyError(script.name, reply);
  return {
    owner: owner === '' ? undefined : owner,
    remaining: owner === '' ? 0 : remainingIn(script, reply, pttl),
    fencingToken: token === '' ? undefined : numberIn(script, reply, token),
    waiting: count < 0 ? undefined : count,
    ...(holders === undefined ? {} : { holders: numberIn(script, reply, holders) }),
    ...(owners === undefined || owners === '' ? {} : { owners: textIn(script, reply, owners) }),
  };
}

/** Of a type without a queue. `areListening`: its waiters listen for releases. */
export function contendedInspector(redis: Redis, format: ScriptedFormat, areListening: boolean): Inspector {
  const count = format.isSharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const listeners = (names: LockNames) => [count, format.channels(names)[0] as string] as const;
  return new Inspector(redis, {
    scripts: format.scripts.inspection,
    keys: (names) => format.keys(names),
    ...(areListening && format.countsListeners ? { listeners } : {}),
    notification: (names) => format.notification(names),
  });
}

/**
 * Notified by: PUBLISH or SPUBLISH and the channel of the grants without its process, for the first in the queue; what
 * `publish` of spring takes, for all that listen. Those that are notified poll.
 */
const FAIR = inspectionScripts(
  'fair',
  OWNER_OF_STRING,
  'ZCARD',
  `
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first then redis.pcall(ARGV[4], ARGV[5] .. ':' .. string.match(first, '^(.*):'), KEYS[1]) end
${publish(6)}`,
);

export function fairInspector(redis: Redis, format: ScriptedFormat): Inspector {
  const command = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
  return new Inspector(redis, {
    scripts: FAIR,
    keys(names) {
      const [lock, ...fence] = format.keys(names) as [string, ...string[]];
      return [lock, names.companion('queue'), ...fence];
    },
    notification: (names) => [command, names.companion('grants'), ...format.notification(names)],
  });
}
