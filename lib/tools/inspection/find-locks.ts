import type { LockState } from '../../api/distributed-lock';
import { DEFAULT_TYPE, type LockType, traitsOf, typesOf } from '../../api/lock-types';
import { describeForm } from '../../api/owner-name';
import type { WarningListener } from '../../api/warnings';
import { clock } from '../../internal/clock';
import { beginningOf, numberOf, type Reader, type Seen } from '../../kinds/common/look';
import { LOOKS } from '../../kinds/looks';
import type { RedisClient } from '../../redis/client';
import { MOST_LOOKS, mastersIn, slotMapsOf } from '../../redis/cluster';
import { isFinal, messageOf, serverErrorCode } from '../../redis/failure';
import { globPattern, LockNames, literally, lockPrefix } from '../../redis/names';
import { askOf, forceUnlockOf } from '../../registry/redis-lock-registry';
import { candidates, STEP_OF_ALL } from './candidates';
import { type FoundLock, foundLock, mayBeOf, type Obstacle } from './found-lock';
import { countsOf, type Listeners, listenersOf } from './listeners';
import { type Asked, serversOf, TIMEOUT } from './servers';

/*
 * Finds the locks of every registry, by what their keys are in Redis: a string, a hash or a zset that has an owner value
 * in it, or a queue. The commands only read: docs/operations.md has the rights that they need. A key that has become something
 * else meanwhile is no lock.
 *
 * Owner values of this library are proof of a lock. Those of Java have a form that data of an application may have too: a
 * string that is a UUID (Spring), a hash with one field of a UUID and a number (Redisson; a cart may look like that). Such
 * a key is sure to be a lock only under a registryKey that is asked for, beside a key that belongs to it (a fence, a
 * queue), or while somebody listens to its channel. No value is shown of the others, and none of them is unlocked unasked.
 */

/** What is looked for: without anything, all locks. */
export interface Search {
  readonly registryKey?: string | undefined;
  readonly type?: LockType | undefined;
  /** A glob for the keys; without `registryKey`, for the ends of the names. */
  readonly match?: string | undefined;
  /** One lock: a key, or without `registryKey` a name, or the end of one after a colon. */
  readonly key?: string | undefined;
  /** The names of locks: only these are looked at. */
  readonly names?: readonly string[] | undefined;
}

export interface Found {
  /** By name. */
  readonly locks: readonly FoundLock[];
  /** Where one lock is looked for: the keys of that name that are no locks, or not of the type. */
  readonly obstacles: readonly Obstacle[];
  /** The addresses of the servers that answered. */
  readonly searched: readonly string[];
  /** Why the answer is only a part; empty: it is complete. */
  readonly missing: readonly string[];
  /** How many keys were looked at. */
  readonly keys: number;
  /** In how many steps the servers were searched: each goes over `STEP_OF_ALL` keys or more, of other names too. */
  readonly steps: number;
}

/**
 * The locks on the server of a client, or on all masters of its cluster. The client is connected. Never rejects: what
 * could not be asked is in `missing`.
 */
export async function findLocks(client: RedisClient, search: Search = {}): Promise<Found> {
  for (let looks = 1; ; looks++) {
    const { haveSlotsMoved, ...found } = await lookOnce(client, search);
    if (!haveSlotsMoved) return found;
    if (looks < MOST_LOOKS) continue;
    return { ...found, missing: [...found.missing, 'Slots of the cluster moved while it was looked at'] };
  }
}

async function lookOnce(client: RedisClient, search: Search): Promise<Found & { readonly haveSlotsMoved: boolean }> {
  const { asked, missing: unasked, isCluster, known, close } = await serversOf(client, TIMEOUT);
  const sends = isCluster ? asked.map(({ send }) => send) : [];
  const before = await slotMapsOf(sends);
  // Without the right to it, how many wait is not known.
  const counts = asked.map((server) => countsOf(server, isCluster).catch(() => undefined));
  const listening = Promise.all(counts).then(listenersOf);
  const looks = await Promise.all(asked.map((server) => lookAt(server, listening, search))).finally(close);
  const after = await slotMapsOf(sends);
  const unknown = Math.max(0, ...after.map(mastersIn)) - known;
  const others = unknown > 0 ? [`The client does not know ${unknown} of the masters of the cluster`] : [];
  // A slot may be moving from one server to another; SCAN may say a name twice.
  const locks = [...new Map(looks.flatMap((look) => look.locks).map((lock) => [lock.lock, lock])).values()];
  const named = locks.filter(({ lock }) => lock === search.key);
  return {
    locks: (named.length > 0 ? named : locks).sort((a, b) => (a.lock < b.lock ? -1 : 1)),
    obstacles: [...new Map(looks.flatMap((look) => look.obstacles).map((one) => [one.name, one])).values()],
    searched: looks.flatMap((look) => look.searched),
    missing: [...unasked, ...others, ...looks.flatMap((look) => look.missing)],
    keys: looks.reduce((sum, { keys }) => sum + keys, 0),
    steps: looks.reduce((sum, { steps }) => sum + steps, 0),
    haveSlotsMoved: after.join() !== before.join(),
  };
}

/** A search that looks at more keys than this costs a server much. */
export const MANY_KEYS = 10_000;

/** The time between two of them, in times that one took. */
const TIMES_LONGER = 20;

/**
 * `findLocks`, for looks that are repeated. After a search that costs much, it looks for a while at those locks only that
 * the search has found, also where they are free since.
 */
export function finderOf(client: RedisClient, search: Search): () => Promise<Found> {
  let names: readonly string[] = [];
  let unseen: readonly string[] = [];
  let searchAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const startedAt = clock.now();
    if (startedAt < searchAt) {
      const found = await findLocks(client, { ...search, names });
      // What the search did not see is not among the names.
      return { ...found, missing: [...new Set([...unseen, ...found.missing])] };
    }
    const found = await findLocks(client, search);
    names = found.locks.map(({ lock }) => lock);
    unseen = found.missing;
    const now = clock.now();
    const isCostly = Math.max(found.keys, Number(STEP_OF_ALL) * found.steps) > MANY_KEYS;
    searchAt = isCostly ? now + TIMES_LONGER * (now - startedAt) : now;
    return found;
  };
}

const FORMATS = Object.keys(LOOKS) as FoundLock['format'][];
const looks = Object.values(LOOKS);

/** One look at one server. Never rejects. */
async function lookAt(server: Asked, listening: Promise<Listeners>, search: Search) {
  const locks: FoundLock[] = [];
  const obstacles: Obstacle[] = [];
  /** Why commands were not executed. */
  const refused = new Set<string>();
  /** The keys that the server has listed last. */
  const listed = new Set<string>();
  let heard = listenersOf([]);
  let keys = 0;
  let steps = 0;
  /** What is added to the monotonic clock for the server's time, in ms. */
  let ahead = 0;
  const now = (): number => clock.now() + ahead;
  // An empty one is that of every name: only one that is asked for is known to be a lock's.
  const isOfRegistry = Boolean(search.registryKey) || (search.registryKey === '' && search.key !== undefined);
  /** What the looks of the kinds read with. */
  const readerOf = (): Reader => ({ heard, isOfRegistry, now, ask });

  async function* batches(): AsyncGenerator<(FoundLock | undefined)[], void, undefined> {
    const { registryKey, key, match = '*' } = search;
    const prefix = lockPrefix(registryKey ?? '');
    const lockNamed = async (name: string): Promise<FoundLock | undefined> => {
      const names = namesOf(name);
      keys++;
      return names && ((await heldLock(names)) ?? (await waitedFor(names)));
    };
    if (search.names !== undefined) {
      yield await Promise.all(search.names.map(lockNamed));
      return;
    }
    if (key !== undefined) {
      const exact = (await lockNamed(prefix + key)) ?? (await lockOrObstacle(namesOf(prefix + key)));
      yield [exact];
      if ((exact !== undefined && mayBeOf(exact, search.type)) || registryKey !== undefined) return;
    }
    const end = key === undefined ? match : `:${literally(key)}`;
    const pattern = registryKey === undefined ? `*${end}` : literally(prefix) + end;
    const isWanted = globPattern(pattern);
    for await (const { looked, keys: names, refused: why } of candidates(server, {
      pattern,
      prefix,
      isOne: key !== undefined,
    })) {
      keys += looked;
      steps++;
      if (why !== undefined) refused.add(why);
      listed.clear();
      for (const [name] of names) listed.add(name);
      yield await Promise.all(names.map(([name, type]) => lockOf(name, type, isWanted)));
    }
  }

  /** The lock whose key this is, or whose queue it is. */
  async function lockOf(name: string, type: string, isWanted: RegExp): Promise<FoundLock | undefined> {
    const queue = looks.find(({ queue }) => queue?.keyType === type && queue.lockOf(name) !== undefined)?.queue;
    const queued = queue?.lockOf(name);
    const names = namesOf(queued ?? name);
    if (names === undefined || !isWanted.test(names.lock)) return undefined;
    if (queued === undefined) {
      return (await heldLock(names, type)) ?? (search.key === undefined ? undefined : lockOrObstacle(names));
    }
    // Somebody may have taken it since the server listed its keys.
    return (await waitedFor(names)) ?? (listed.has(names.lock) ? undefined : heldLock(names));
  }

  /** Looks at a key that was no lock before. One that is none now either, and is there, is an obstacle. */
  async function lockOrObstacle(names: LockNames | undefined): Promise<FoundLock | undefined> {
    if (names === undefined || looks.some((look) => look.isBeside?.(names.lock))) return undefined;
    const { lock: name } = names;
    const type = await ask('TYPE', name);
    if (type === null || type === 'none') return undefined;
    // What is left of a semaphore whose leases have ended is seen, and lets everybody in.
    const seen = await seenAs(names, String(type));
    if (seen !== undefined) return seen.lock;
    const remaining = await numberOf(readerOf(), 'PTTL', name);
    const value = type === 'string' ? await beginningOf(readerOf(), name) : undefined;
    const form = value === undefined ? undefined : describeForm(value);
    if (remaining !== null && remaining !== -2) {
      obstacles.push({ name, type: String(type), remaining: remaining === -1 ? null : remaining, isLock: false, form });
    }
    return undefined;
  }

  async function heldLock(names: LockNames, known?: string): Promise<FoundLock | undefined> {
    const type = known ?? String(await ask('TYPE', names.lock));
    return (await seenAs(names, type))?.lock;
  }

  /** What the key of this type is; `undefined`: no lock's. */
  async function seenAs(names: LockNames, type: string): Promise<{ lock: FoundLock | undefined } | undefined> {
    for (const format of FORMATS) {
      const seen = LOOKS[format].keyType === type ? await LOOKS[format].held(names, readerOf()) : undefined;
      if (seen !== undefined) return { lock: made(names, format, seen) };
    }
    return undefined;
  }

  async function waitedFor(names: LockNames): Promise<FoundLock | undefined> {
    // A lock that is held is found by its own key.
    if ((await ask('TYPE', names.lock)) !== 'none') return undefined;
    const all = await Promise.all(looks.map((look) => look.waitedFor?.(names, readerOf())));
    const first = all.findIndex((seen) => seen !== undefined);
    return all[first] && made(names, FORMATS[first] as FoundLock['format'], all[first]);
  }

  function made({ lock }: LockNames, format: FoundLock['format'], seen: Seen): FoundLock | undefined {
    const { registryKey = heard.registryKeyOf(lock, seen.owners[0]?.owner) } = search;
    return foundLock(lock, format, registryKey, seen, now());
  }

  /**
   * `null`: there is no such key; it is something else by now, or on another server. Other errors are noted, and that a
   * key which the server lists is on another one: its slot is moving, and none of the two may show it. Rejects where the
   * server answers nothing now, as while it loads its data.
   */
  async function ask(...command: string[]): Promise<unknown> {
    if (command[1] === '') return null;
    try {
      return await server.send(...command);
    } catch (error) {
      const code = serverErrorCode(error);
      const isElsewhere = code === 'ASK' || code === 'MOVED';
      if (code === undefined || (!isElsewhere && !isFinal(error))) throw error;
      const isMoving = code === 'ASK' || (code === 'MOVED' && listed.has(command[1] ?? ''));
      if (isMoving) refused.add('a slot of the cluster is moving');
      else if (code !== 'WRONGTYPE' && code !== 'MOVED') refused.add(messageOf(error));
      return null;
    }
  }

  const all = async (): Promise<void> => {
    const [seconds, microseconds] = (await server.send('TIME')) as [string, string];
    ahead = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - clock.now();
    heard = await listening;
    // There may be more than a function takes as arguments.
    for await (const found of batches()) {
      for (const lock of found) {
        if (lock === undefined) continue;
        if (mayBeOf(lock, search.type)) locks.push(lock);
        else if (search.key !== undefined && lock.holder !== null) {
          const type = String(await ask('TYPE', lock.lock));
          obstacles.push({ name: lock.lock, type, remaining: lock.remaining, isLock: true });
        }
      }
    }
  };
  let what = ' about everything';
  try {
    await Promise.race([all(), server.down]);
  } catch (error) {
    // The server did not answer, or does not list its keys.
    what = '';
    refused.add(messageOf(error));
  }
  const missing = [...refused].map((reason) => `${server.address} could not be asked${what}: ${reason}`);
  return { locks, obstacles, missing, keys, steps, searched: what === '' ? [] : [server.address] };
}

/** The names of a lock; `undefined`: a key of this name belongs to another lock. */
function namesOf(lock: string): LockNames | undefined {
  try {
    return LockNames.checked('', lock);
  } catch {
    return undefined;
  }
}

/** Takes a lock from its holder, and notifies the waiters. Resolves to what it was before. */
export function forceUnlock(client: RedisClient, found: FoundLock, onWarning?: WarningListener): Promise<LockState> {
  return forceUnlockOf(client, splitOf(found), typeOf(found), onWarning);
}

/** Asks the holder to end early. Resolves to whether it was heard. `by`: the name of who asks. */
export function ask(client: RedisClient, found: FoundLock, why: string, by?: string): Promise<boolean> {
  return askOf(client, splitOf(found), typeOf(found), why, by);
}

function typeOf(found: FoundLock): LockType {
  // Of a type that notifies, or else polls. A key that is no lock of it may be a shared lock, of which all types know.
  const types = typesOf(found.format);
  return found.type ?? types.find((type) => !traitsOf(type).polls) ?? types[0] ?? DEFAULT_TYPE;
}

/** Where the registryKey is not known, nobody listens for the release, and every split that makes the name is as good. */
export function splitOf({
  key,
  lock,
  registryKey,
}: Pick<FoundLock, 'key' | 'lock' | 'registryKey'>): [registryKey: string, key: string] {
  if (registryKey !== null && key !== null) return [registryKey, key];
  const [, before = '', behind = lock] = /^([^:]+):(.+)$/s.exec(lock) ?? [];
  return [before, behind];
}
