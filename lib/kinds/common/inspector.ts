import { randomUUID } from 'node:crypto';
import type { Forced, Inspected, LockInspector } from '../../core/backend';
import { messageTaken } from '../../core/inbox';
import { ownersIn } from '../../core/inspection';
import type { Released } from '../../core/protocol';
import { clock } from '../../internal/clock';
import type { LuaValues } from '../../internal/lua';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { LockScript, type Script } from '../../redis/script';
import { inboxOf } from './inbox-channels';
import { arrayIn, foundIn, numberIn, remainingIn, textIn } from './replies';
import { kindLua } from './script-parts';

/** ms; a client repeats a command within that time. */
const MARKED_FOR = 60_000;

type InspectionScripts = ReturnType<typeof inspectionScripts>;

/** What the scripts of a kind name. */
interface InspectedScripts extends LuaValues {
  /** The folder with the piece `holder`, which reads the owner. */
  readonly THIS_KIND: string;
  /** The piece that notifies the waiters. */
  readonly NOTIFY_PIECE: string;
}

/** What a lock looks like, for people. With QUEUE_LENGTH, the command that counts the queue, it has one. */
export function inspectionScripts(type: string, values: InspectedScripts) {
  const inspect = 'QUEUE_LENGTH' in values ? 'inspect-queue' : 'inspect';
  return {
    inspect: new LockScript(`inspect (${type})`, kindLua(`common/${inspect}`, values)),
    forceUnlock: new LockScript(`unlock by force (${type})`, kindLua('common/force-unlock', values)),
  };
}

/** What the scripts are called with. */
interface InspectedFormat {
  keys(names: LockNames): string[];
  /** How the waiters are notified of a forced unlock: the last arguments. */
  notification(names: LockNames): readonly string[];
}

/** The queue of a lock. */
interface Queue {
  /** Finds whether a process stands in it. */
  readonly script: LockScript;
  key(names: LockNames): string;
  /** How a ticket of the registry with this id may begin. */
  beginnings(id: string): string[];
}

/** `type`: what has the queue. `read`: the command that reads the queue in KEYS[1], in Lua. */
export function queueScript(type: string, read: string): LockScript {
  return new LockScript(`find a waiter (${type})`, kindLua('common/is-waiting', { READ_QUEUE: read }));
}

/** How tickets begin that are owner values. */
export const asOwner = (id: string): string[] => [`${id}:`];

/**
 * Inspects the locks of a registry, and unlocks them by force. `listeners`: the command that counts those that wait, as
 * they listen, and their channel; `undefined`: the number is that of the queue, or not known.
 */
export function inspectorOf(
  redis: Redis,
  scripts: InspectionScripts,
  format: InspectedFormat,
  { listeners, queue }: { listeners?: ((names: LockNames) => string[]) | undefined; queue?: Queue } = {},
): LockInspector {
  const inspect = (names: LockNames, timeout: number): Promise<Inspected> => {
    const args = listeners?.(names) ?? ['', ''];
    return redis.run(scripts.inspect, format.keys(names), args, timeout, (reply) => read(scripts.inspect, reply));
  };
  const forceUnlock = async (names: LockNames, timeout: number, by: string): Promise<Forced> => {
    const { forceUnlock: script } = scripts;
    const until = clock.now() + timeout;
    const found = await inspect(names, timeout);
    const owners = found.owners ?? found.owner;
    if (owners === undefined) return found;
    // Where the lock can have a second key.
    const evals = names.companionOrNone('evals');
    const mark = evals === undefined ? [] : [`${evals}:forced:${randomUUID()}`];
    const told = lettersTo(ownersIn(found), names, by);
    const marked = [owners, mark.length > 0 ? String(MARKED_FOR) : ''];
    const args = [...marked, String(told.length), ...told, ...format.notification(names)];
    const keys = [...format.keys(names), ...mark];
    const read = (reply: unknown): Released | number =>
      Array.isArray(reply) ? numberIn(script, reply, arrayIn(script, reply, 2)[1]) : foundIn(script, reply, reply);
    const ended = await redis.run(script, keys, args, until - clock.now(), read);
    if (typeof ended === 'number') return { ...found, heard: ended > 0 || !redis.isCluster ? ended : undefined };
    return ended === 'stolen' ? { ...found, isOthersNow: true } : FREE;
  };
  if (queue === undefined) return { inspect, forceUnlock };
  const isAwaitedBy = (id: string, names: LockNames, timeout: number): Promise<boolean> => {
    const { script } = queue;
    const found = (reply: unknown) => numberIn(script, reply, reply) === 1;
    return redis.run(script, [queue.key(names)], queue.beginnings(id), timeout, found);
  };
  return { inspect, forceUnlock, isAwaitedBy };
}

/** The lock of nobody. */
const FREE: Inspected = { owner: undefined, remaining: 0, fencingToken: undefined, waiting: undefined };

/** An inbox and a message for each of the owners that one can be told. */
function lettersTo(owners: readonly string[], names: LockNames, by: string): string[] {
  return owners.flatMap((owner) => {
    const inbox = inboxOf(names.registryKey, owner);
    return inbox === undefined ? [] : [inbox, messageTaken(owner, by, names)];
  });
}

function read(script: Script, reply: unknown): Inspected {
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
