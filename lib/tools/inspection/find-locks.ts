import { DEFAULT_TYPE, type LockType, SHARED_KINDS, type SharedKind, traitsOf, typesOf } from '../../api/lock-types';
import { holderOf, nameIn, REDISSONS, SPRINGS } from '../../api/owner-name';
import type { WarningListener } from '../../api/warnings';
import { clock } from '../../internal/clock';
import { processOf, ticketOf } from '../../kinds/fair/ticket';
import { CHANNEL, redissonName, TOKEN } from '../../kinds/redisson/keys';
import { lockOfRedissonQueue, QUEUE, TIMEOUTS } from '../../kinds/redisson-fair/keys';
import type { RedisClient } from '../../redis/client';
import { MOST_LOOKS, mastersIn, slotMapsOf } from '../../redis/cluster';
import { isFinal, messageOf, serverErrorCode } from '../../redis/failure';
import { globPattern, LockNames, literally, lockOfChannel, lockOfCompanion, lockPrefix } from '../../redis/names';
import { forceUnlockOf } from '../../registry/redis-lock-registry';
import { candidates, STEP_OF_ALL } from './candidates';
import { type FoundLock, foundLock, type Known, mayBeOf, type Obstacle, type Owner } from './found-lock';
import { type Asked, serversOf } from './servers';

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

/** ms until a server that does not answer counts as not there. */
const TIMEOUT = 5_000;

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
    missing: [...unasked, ...(isCluster ? others : []), ...looks.flatMap((look) => look.missing)],
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

const MEMBER = new RegExp(`^(${SHARED_KINDS.join('|')}):(.+)$`);

/** What belongs to a lock of Redisson whose name has a brace in it. */
const OF_REDISSON = /^redisson_lock_(queue|timeout|token):/;

type Counts = readonly (readonly [channel: string, count: number])[];

/** How many listen to the releases of locks, to grants of `fair` locks, and to channels of Redisson. */
async function countsOf(server: Asked, isCluster: boolean): Promise<Counts> {
  const listening = async (sharded: string, pattern: string): Promise<Counts> => {
    const channels = (await server.send('PUBSUB', `${sharded}CHANNELS`, pattern)) as unknown[];
    if (channels.length === 0) return [];
    const counts = (await server.send('PUBSUB', `${sharded}NUMSUB`, ...channels.map(String))) as unknown[];
    return channels.map((channel, i) => [String(channel), Number(counts[2 * i + 1])]);
  };
  const redissons = `${CHANNEL}:*`;
  const all = ['*-channel:*', '{*}:grants:*', redissons].map((pattern) => listening('', pattern));
  // Several patterns may find the same channel.
  const counts = await Promise.all(isCluster ? [...all, listening('SHARD', redissons)] : all);
  return [...new Map(counts.flat())];
}

/** Listeners of all servers: each of a cluster only knows its own. `undefined`: it is not known of a server. */
function listenersOf(counts: readonly (Counts | undefined)[]) {
  const areKnown = !counts.includes(undefined);
  const sums = new Map<string, number>();
  const registryKeys = new Map<string, string>();
  /** What the channels begin with that grants are published on. */
  const grants = new Set<string>();
  for (const [channel, count] of counts.flatMap((one) => one ?? [])) {
    const { registryKey, lock: name = channel } = lockOfChannel(channel) ?? {};
    if (registryKey !== undefined) registryKeys.set(name, registryKey);
    sums.set(name, (sums.get(name) ?? 0) + count);
    if (!channel.includes('}:grants:')) continue;
    for (const { index } of channel.matchAll(/:/g)) grants.add(channel.slice(0, index));
  }
  /** `null`: nobody listens, as far as it is known. */
  const of = (name: string): number | null => (areKnown ? (sums.get(name) ?? null) : null);
  /** A process that waits for a `fair` lock, or passes it on, listens for grants, and to the releases of other types. */
  const isHeardByFair = (names: LockNames): boolean => grants.has(companion(names, 'grants'));
  return { of, registryKeyOf: (lock: string) => registryKeys.get(lock), isHeardByFair };
}

/** One look at one server. Never rejects. */
async function lookAt(server: Asked, listening: Promise<ReturnType<typeof listenersOf>>, search: Search) {
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
    const queued =
      type === 'list'
        ? lockOfRedissonQueue(name)
        : (lockOfCompanion(name, 'queue') ?? lockOfCompanion(name, 'waiters'));
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
    if (names === undefined || OF_REDISSON.test(names.lock)) return undefined;
    const { lock: name } = names;
    const type = await ask('TYPE', name);
    if (type === null || type === 'none') return undefined;
    const found = await heldLock(names, String(type));
    // What is left of a semaphore whose leases have ended lets everybody in.
    const isEmpty = type === 'zset' && MEMBER.test(listOf(await ask('ZRANGE', name, '0', '0'))[0] ?? '');
    if (found !== undefined || isEmpty) return found;
    const remaining = await numberOf('PTTL', name);
    if (remaining !== null && remaining !== -2) note(name, String(type), remaining === -1 ? null : remaining);
    return undefined;
  }

  function note(name: string, type: string, remaining: number | null, isLock = false): void {
    obstacles.push({ name, type, remaining, isLock });
  }

  async function heldLock(names: LockNames, known?: string): Promise<FoundLock | undefined> {
    const type = known ?? (await ask('TYPE', names.lock));
    if (type === 'string') return stringLock(names);
    if (type === 'hash') return hashLock(names);
    return type === 'zset' ? zsetLock(names) : undefined;
  }

  async function waitedFor(names: LockNames): Promise<FoundLock | undefined> {
    // A lock that is held is found by its own key.
    if ((await ask('TYPE', names.lock)) !== 'none') return undefined;
    const [fair, redissons, shared] = await Promise.all([fairQueue(names), redissonQueue(names), sharedQueue(names)]);
    if (fair.length > 0) return made(names, 'spring', [], { type: 'fair', queue: fair });
    if (redissons.length > 0) return made(names, 'redisson', [], { type: 'redisson-fair', queue: redissons });
    const { queue, permits } = shared;
    return made(names, 'shared', [], { kind: queue[0]?.kind ?? 'lock', permits, queue });
  }

  /** Spring's format. */
  async function stringLock(names: LockNames): Promise<FoundLock | undefined> {
    const owner = await ask('GETRANGE', names.lock, '0', '255');
    // An empty text may also say that there is no such key: its remaining time tells.
    if (typeof owner !== 'string') return undefined;
    const isOurs = nameIn(owner) !== undefined;
    if (!isOurs && !SPRINGS.test(owner) && !search.registryKey) return undefined;
    const [remaining, fencingToken = null, queue] = await Promise.all([
      numberOf('PTTL', names.lock),
      numberOf('GET', companion(names, 'fence')),
      fairQueue(names),
    ]);
    // A lock expires. Data of an application does not, more often than not.
    const hasForm = SPRINGS.test(owner) && remaining !== -1;
    if (!isOurs && !hasForm && !search.registryKey) return undefined;
    const isHeard = heard.registryKeyOf(names.lock) !== undefined;
    const isProven = fencingToken !== null || queue.length > 0 || isHeard;
    const isGrant = isOurs && holderOf(owner) !== ticketOf(holderOf(owner));
    const listeners = heard.of(names.lock);
    const isFair = isGrant || queue.length > 0 || heard.isHeardByFair(names);
    return made(names, 'spring', [{ owner, remaining }], {
      isSure: isOurs || (hasForm && (isProven || Boolean(search.registryKey))),
      isCertain: isOurs || (hasForm && isProven),
      type: isFair ? 'fair' : listeners ? 'pub-sub' : null,
      listeners: isFair ? undefined : listeners,
      queue,
      fencingToken,
    });
  }

  async function hashLock(names: LockNames): Promise<FoundLock | undefined> {
    if (Number(await ask('HLEN', names.lock)) !== 1) return undefined;
    const [owner] = listOf(await ask('HKEYS', names.lock));
    if (owner === undefined || (nameIn(owner) === undefined && !REDISSONS.test(owner))) return undefined;
    const [remaining, fencingToken, queue] = await Promise.all([
      numberOf('PTTL', names.lock),
      numberOf('GET', redissonName(names, TOKEN)),
      redissonQueue(names),
    ]);
    const isFair = queue.length > 0;
    const listeners = heard.of(redissonName(names, CHANNEL));
    const isProven = fencingToken !== null || isFair || listeners !== null;
    const isAsked = isProven || Boolean(search.registryKey);
    const isOurs = nameIn(owner) !== undefined;
    if (!isOurs && !isAsked && remaining === -1) return undefined;
    return made(names, 'redisson', [{ owner, remaining }], {
      isSure: isOurs || (isAsked && remaining !== -1),
      isCertain: isOurs || (isProven && remaining !== -1),
      type: isFair ? 'redisson-fair' : null,
      listeners: isFair ? undefined : listeners,
      queue,
      fencingToken,
    });
  }

  /** Semaphores and read/write locks. */
  async function zsetLock(names: LockNames): Promise<FoundLock | undefined> {
    const [first = ''] = listOf(await ask('ZRANGE', names.lock, '0', '0'));
    const kind = MEMBER.exec(first)?.[1] as SharedKind | undefined;
    if (kind === undefined) return undefined;
    const [members, { queue, permits }, fencingToken] = await Promise.all([
      ask('ZRANGE', names.lock, '0', '-1', 'WITHSCORES'),
      sharedQueue(names),
      kind === 'write' ? numberOf('GET', companion(names, 'fence')) : null,
    ]);
    const owners = pairsOf(members).flatMap(([member, end]) => {
      const owner = MEMBER.exec(member)?.[2] ?? '';
      const remaining = Math.round(Number(end) - now());
      return nameIn(owner) !== undefined && remaining > 0 ? [{ owner, remaining }] : [];
    });
    return made(names, 'shared', owners.reverse(), { kind, permits, queue, fencingToken });
  }

  function made({ lock }: LockNames, format: FoundLock['format'], owners: readonly Owner[], known: Known) {
    const { registryKey = heard.registryKeyOf(lock) } = search;
    return foundLock(lock, format, registryKey, owners, known, now());
  }

  /** Their positions are the times at which they came, in microseconds. */
  async function fairQueue(names: LockNames): Promise<Queue> {
    const all = pairsOf(await ask('ZRANGE', companion(names, 'queue'), '0', '-1', 'WITHSCORES'));
    const tickets = all.filter(isOfLibrary);
    const lives = tickets.length > 0 ? pairsOf(await ask('HGETALL', companion(names, 'tickets'))) : [];
    // A hand-over passes over a process that has not polled for too long.
    const dead = new Set(lives.flatMap(([process, life]) => (Number.parseInt(life, 10) < now() ? [process] : [])));
    const alive = tickets.filter(([owner]) => !dead.has(processOf(owner)));
    return alive.map(([owner, score]) => ({ owner, since: Number(score) / 1_000 }));
  }

  async function redissonQueue(names: LockNames): Promise<Queue> {
    const owners = listOf(await ask('LRANGE', redissonName(names, QUEUE), '0', '-1'));
    const known = owners.filter((owner) => isOfLibrary([owner]) || REDISSONS.test(owner));
    const ends =
      known.length > 0 ? pairsOf(await ask('ZRANGE', redissonName(names, TIMEOUTS), '0', '-1', 'WITHSCORES')) : [];
    // The next attempt removes them from the queue.
    const past = new Set(ends.flatMap(([owner, end]) => (Number(end) <= now() ? [owner] : [])));
    return known.filter((owner) => !past.has(owner)).map((owner) => ({ owner }));
  }

  async function sharedQueue(names: LockNames): Promise<{ readonly queue: Queue; readonly permits: number | null }> {
    const fields = pairsOf(await ask('HGETALL', companion(names, 'waiters')));
    // "<the number>:<when it was given>"
    const given = fields.find(([field]) => field === 'permits')?.[1];
    const tickets = fields.flatMap(([field, value]) => {
      const [, kind, owner = ''] = MEMBER.exec(field) ?? [];
      const [arrival = 0, until = 0] = value.split(':').map(Number);
      // A process that has not polled for too long has lost its ticket.
      if (!isOfLibrary([owner]) || !(until > now())) return [];
      // 0: readers that come before others, since a writer has left.
      return [{ owner, kind: kind as SharedKind, arrival, ...(arrival > 0 ? { since: arrival / 1_000 } : {}) }];
    });
    const permits = given === undefined ? null : Number.parseInt(given, 10);
    return { queue: tickets.sort((one, other) => one.arrival - other.arrival), permits };
  }

  async function numberOf(...command: string[]): Promise<number | null> {
    const answer = await ask(...command);
    return answer === null || Number.isNaN(Number(answer)) ? null : Number(answer);
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
        else if (search.key !== undefined && lock.holder !== null)
          note(lock.lock, String(await ask('TYPE', lock.lock)), lock.remaining, true);
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

type Queue = NonNullable<Known['queue']>;

/** What is in the queues of others is not ours to show. */
function isOfLibrary([owner]: readonly [owner: string, ...unknown[]]): boolean {
  return nameIn(owner) !== undefined;
}

function listOf(answer: unknown): string[] {
  return Array.isArray(answer) ? answer.map(String) : [];
}

/** The pairs of a reply: clients make lists of it, lists of lists, lists of `{ key, value }`, objects or maps. */
function pairsOf(answer: unknown): (readonly [string, string])[] {
  if (answer instanceof Map) return pairsOf([...answer]);
  if (!Array.isArray(answer)) return pairsOf(Object.entries(answer ?? {}));
  const flat = answer.flatMap((one) => (typeof one === 'object' && 'key' in one ? [one.key, one.value] : one));
  return flat.flatMap((one, i) => (i % 2 === 0 ? [[String(one), String(flat[i + 1])]] : []));
}

/** The names of a lock; `undefined`: a key of this name belongs to another lock. */
function namesOf(lock: string): LockNames | undefined {
  return orNot(() => new LockNames('', lock));
}

/** '': the braces in the name of the lock make no hash tag, so it has none. */
function companion(names: LockNames, suffix: 'queue' | 'tickets' | 'grants' | 'fence' | 'waiters'): string {
  return orNot(() => names.companion(suffix)) ?? '';
}

/** What `make` returns; `undefined`: it throws. */
function orNot<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

/** Takes a lock from its holder, and notifies the waiters. Resolves to whether somebody had it. */
export async function forceUnlock(
  client: RedisClient,
  found: FoundLock,
  onWarning?: WarningListener,
): Promise<boolean> {
  // Of a type that notifies, or else polls. A key that is no lock of it may be a shared lock, of which all types know.
  const types = typesOf(found.format);
  const lockType = found.type ?? types.find((type) => !traitsOf(type).polls) ?? types[0] ?? DEFAULT_TYPE;
  return (await forceUnlockOf(client, ...splitOf(found), lockType, onWarning)).held;
}

/** Where the registryKey is not known, nobody listens for the release, and every split that makes the name is as good. */
function splitOf({ key, lock, registryKey }: FoundLock): [registryKey: string, key: string] {
  if (registryKey !== null && key !== null) return [registryKey, key];
  const [, before = '', behind = lock] = /^([^:]+):(.+)$/s.exec(lock) ?? [];
  return [before, behind];
}
