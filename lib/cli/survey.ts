import { LOCK_TYPES, type LockType } from '../api/lock-types';
import { holderOf, isKept, nameIn } from '../api/owner-name';
import { grantedAt } from '../protocols/fair/ticket';
import { QUEUE, redissonName, TOKEN } from '../protocols/redisson/redisson';
import { literally } from '../redis/cluster';
import { messageOf, serverErrorCode } from '../redis/failure';
import { LockNames } from '../redis/names';

/*
 * Finds the locks of every registry, by what their keys are in Redis: a string, a hash or a zset that has an owner value
 * in it. It sends commands that only read, and no scripts. A key that has become something else by then is no lock.
 */

/** A server that is asked. `send` rejects with an error of the server, or with any other when it does not answer. */
interface Asked {
  readonly address: string;
  send(...command: string[]): Promise<unknown>;
}

/** One lock, as --json prints it: docs/cli.md says what each part is. `null`: not known, or there is none. */
export interface FoundLock {
  readonly lock: string;
  readonly registryKey: string | null;
  readonly key: string | null;
  readonly kind: 'lock' | 'semaphore' | 'read' | 'write';
  readonly format: 'spring' | 'redisson' | 'shared';
  readonly type: LockType | null;
  readonly isSure: boolean;
  readonly isKept: boolean;
  readonly holder: string;
  readonly owner: string;
  readonly holders: readonly { readonly holder: string; readonly owner: string; readonly remaining: number }[];
  readonly remaining: number;
  readonly heldFor: number | null;
  readonly renewed: boolean | null;
  readonly permits: number | null;
  readonly waiting: number | null;
  readonly fencingToken: number | null;
}

/** What is looked for. `key`: a name, or the end of one after a colon. */
export interface Wanted {
  readonly registryKey: string | undefined;
  readonly type: LockType | undefined;
  readonly match?: string | undefined;
  readonly key?: string;
}

export interface Survey {
  /** By name. */
  readonly locks: readonly FoundLock[];
  /** Why the answer is not complete. */
  readonly missing: readonly string[];
}

/** The locks on these servers. `isCluster`: each of them knows only a part of the listeners. */
export async function survey(servers: readonly Asked[], isCluster: boolean, wanted: Wanted): Promise<Survey> {
  const looks = servers.map((server) => new Look(server, isCluster, wanted));
  const found = (await Promise.all(looks.map((look) => look.locks()))).flat();
  const locks = [...new Map(found.map((lock) => [lock.lock, lock])).values()];
  const named = locks.filter(({ lock }) => lock === wanted.key);
  return {
    locks: (named.length > 0 ? named : locks).sort((a, b) => (a.lock < b.lock ? -1 : 1)),
    missing: looks.flatMap(({ server, refused }) => {
      return [...refused].map((reason) => `${server.address} could not be asked about everything: ${reason}`);
    }),
  };
}

const UUID = '[\\da-f]{8}(-[\\da-f]{4}){3}-[\\da-f]{12}';
/** The owner values of Spring Integration and of Redisson. */
const SPRINGS = new RegExp(`^${UUID}$`, 'i');
const REDISSONS = new RegExp(`^${UUID}:\\d+$`, 'i');
const MEMBER = /^(semaphore|read|write):(.+)$/;

const TYPES = ['string', 'hash', 'zset'] as const;

/** One look at one server. */
class Look {
  readonly server: Asked;
  readonly refused = new Set<string>();
  readonly #isCluster: boolean;
  readonly #wanted: Wanted;
  /** The server's time, in ms. */
  #now = 0;
  /** Of the locks, or channels of Redisson, whose releases somebody listens for. `count`: `null`: not known. */
  readonly #listeners = new Map<string, { readonly registryKey: string | null; readonly count: number | null }>();

  constructor(server: Asked, isCluster: boolean, wanted: Wanted) {
    this.server = server;
    this.#isCluster = isCluster;
    this.#wanted = wanted;
  }

  async locks(): Promise<FoundLock[]> {
    try {
      const [seconds, microseconds] = (await this.server.send('TIME')) as [string, string];
      this.#now = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
      await this.#readChannels();
      return (await this.#find()).filter((lock) => lock !== undefined);
    } catch (error) {
      this.refused.add(messageOf(error));
      return [];
    }
  }

  async #find(): Promise<(FoundLock | undefined)[]> {
    const { registryKey, key, match = '*' } = this.#wanted;
    const prefix = registryKey ? `${registryKey}:` : '';
    if (key !== undefined) {
      const named = await this.#ask('TYPE', prefix + key);
      const type = TYPES.find((one) => one === named);
      const exact = type && (await this.#lockIn(prefix + key, type));
      if (exact !== undefined || registryKey !== undefined) return [exact];
    }
    const end = key === undefined ? match : `:${literally(key)}`;
    const pattern = registryKey === undefined ? `*${end}` : literally(prefix) + end;
    const locks = [];
    for (const type of TYPES) {
      let cursor = '0';
      do {
        const page = await this.server.send('SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000', 'TYPE', type);
        const [next, names] = page as [unknown, unknown[]];
        locks.push(...(await Promise.all(names.map((name) => this.#lockIn(String(name), type)))));
        cursor = String(next);
      } while (cursor !== '0');
    }
    return locks;
  }

  async #lockIn(name: string, type: (typeof TYPES)[number]): Promise<FoundLock | undefined> {
    let names: LockNames;
    try {
      names = new LockNames('', name);
    } catch {
      return undefined; // it belongs to another lock
    }
    const lock = await (type === 'string'
      ? this.#string(names)
      : type === 'hash'
        ? this.#hash(names)
        : this.#zset(names));
    const { type: asked, registryKey = this.#listeners.get(name)?.registryKey ?? null } = this.#wanted;
    if (lock === undefined || (asked !== undefined && !typesOf(lock).includes(asked))) return undefined;
    const key = registryKey === null ? null : name.slice(registryKey === '' ? 0 : registryKey.length + 1);
    return { ...lock, registryKey, key };
  }

  /** Spring's format. */
  async #string(names: LockNames): Promise<FoundLock | undefined> {
    const owner = await this.#ask('GETRANGE', names.lock, '0', '255');
    if (typeof owner !== 'string' || owner === '') return undefined;
    const isSure = nameIn(owner) !== undefined;
    if (!isSure && !SPRINGS.test(owner) && this.#wanted.registryKey === undefined) return undefined;
    const [remaining, queue = null, fencingToken = null] = await this.#numbers(
      ['PTTL', names.lock],
      ['ZCARD', companion(names, 'queue')],
      ['GET', companion(names, 'fence')],
    );
    // Data of an application has no expiry, more often than not.
    if (!isSure && remaining === -1 && this.#wanted.registryKey === undefined) return undefined;
    const since = isKept(owner) ? undefined : grantedAt(owner);
    const { count: listeners = null } = this.#listeners.get(names.lock) ?? {};
    const isFair = since !== undefined || Number(queue) > 0;
    return lockOf(names, 'spring', [{ owner, remaining }], {
      isSure,
      type: isFair ? 'fair' : listeners ? 'pub-sub' : null,
      heldFor: since === undefined ? null : Math.max(0, Math.round(this.#now - since)),
      waiting: isFair ? queue : listeners,
      fencingToken,
    });
  }

  async #hash(names: LockNames): Promise<FoundLock | undefined> {
    if (Number(await this.#ask('HLEN', names.lock)) !== 1) return undefined;
    const [owner] = [await this.#ask('HKEYS', names.lock)].flat().map(String);
    if (owner === undefined || (nameIn(owner) === undefined && !REDISSONS.test(owner))) return undefined;
    const [remaining, queue = null, fencingToken = null] = await this.#numbers(
      ['PTTL', names.lock],
      ['LLEN', redissonName(names, QUEUE)],
      ['GET', redissonName(names, TOKEN)],
    );
    const isFair = Number(queue) > 0;
    return lockOf(names, 'redisson', [{ owner, remaining }], {
      type: isFair ? 'redisson-fair' : null,
      waiting: isFair ? queue : (this.#listeners.get(redissonName(names, CHANNEL))?.count ?? null),
      fencingToken,
    });
  }

  /** Semaphores and read/write locks. */
  async #zset(names: LockNames): Promise<FoundLock | undefined> {
    const [first] = [await this.#ask('ZRANGE', names.lock, '0', '0')].flat().map(String);
    const [, kind] = MEMBER.exec(first ?? '') ?? [];
    if (kind === undefined) return undefined;
    const members = [await this.#ask('ZRANGE', names.lock, '0', '-1', 'WITHSCORES')].flat(2).map(String);
    const holders = members.flatMap((member, i) => {
      const [, , owner = ''] = MEMBER.exec(member) ?? [];
      const remaining = Math.round(Number(members[i + 1]) - this.#now);
      return nameIn(owner) !== undefined && remaining > 0 ? [{ owner, remaining }] : [];
    });
    const waiters = companion(names, 'waiters');
    const [tickets = null, fencingToken = null] = await this.#numbers(
      ['HLEN', waiters],
      kind === 'write' ? ['GET', companion(names, 'fence')] : [],
    );
    // "<the number>:<when it was given>"
    const given = kind === 'semaphore' ? await this.#ask('HGET', waiters, 'permits') : null;
    const permits = given === null ? null : Number.parseInt(String(given), 10);
    const waiting = tickets === null ? null : tickets - (permits === null ? 0 : 1);
    return lockOf(names, 'shared', holders.reverse(), { kind: kind as 'read', permits, waiting, fencingToken });
  }

  async #readChannels(): Promise<void> {
    try {
      const patterns = ['*-channel:*', `${CHANNEL}:*`];
      const found = await Promise.all(patterns.map((pattern) => this.server.send('PUBSUB', 'CHANNELS', pattern)));
      const channels = found.flat().map(String);
      const counted = this.#isCluster ? [] : ((await this.server.send('PUBSUB', 'NUMSUB', ...channels)) as unknown[]);
      for (const [i, channel] of channels.entries()) {
        // The channel of a lock has its registryKey twice.
        const [, registryKey = null, name = channel] = /^(.*)-channel:(\1:.*)$/s.exec(channel) ?? [];
        this.#listeners.set(name, { registryKey, count: this.#isCluster ? null : Number(counted[2 * i + 1]) });
      }
    } catch (error) {
      // Without the right to it: how many wait is not known.
      if (serverErrorCode(error) === undefined) throw error;
    }
  }

  /** `null`: it is no number. */
  #numbers(...commands: string[][]): Promise<(number | null)[]> {
    return Promise.all(
      commands.map(async (command) => {
        const answer = command.length === 0 ? null : await this.#ask(...command);
        const number = Number.parseFloat(String(answer)); // the number of permits has more after it
        return Number.isNaN(number) ? null : number;
      }),
    );
  }

  /** `null`: the key is something else by now, or on another server. Other errors of the server are noted. */
  async #ask(...command: string[]): Promise<unknown> {
    try {
      return await this.server.send(...command);
    } catch (error) {
      const code = serverErrorCode(error);
      if (code === undefined) throw error;
      if (code !== 'WRONGTYPE' && code !== 'MOVED') this.refused.add(messageOf(error));
      return null;
    }
  }
}

const CHANNEL = 'redisson_lock__channel';

/** The lock with these holders, whose key has `remaining` as PTTL says it; `undefined`: it is free by now. */
function lockOf(
  { lock }: LockNames,
  format: FoundLock['format'],
  found: readonly { readonly owner: string; readonly remaining: number | null | undefined }[],
  known: Partial<FoundLock>,
): FoundLock | undefined {
  const holders = found.map(({ owner, remaining }) => {
    return {
      holder: nameIn(owner) ?? holderOf(owner),
      owner,
      remaining: remaining === -1 ? Number.POSITIVE_INFINITY : Number(remaining ?? -2),
    };
  });
  const [first] = holders;
  if (first === undefined || first.remaining < 0) return undefined;
  const unknown = {
    registryKey: null,
    key: null,
    type: null,
    heldFor: null,
    renewed: null,
    permits: null,
    waiting: null,
    fencingToken: null,
  };
  return {
    lock,
    ...unknown,
    kind: 'lock',
    format,
    isSure: true,
    isKept: isKept(first.owner),
    ...first,
    holders,
    ...known,
  };
}

/** The lock types that it may be of. */
function typesOf({ format, type }: FoundLock): readonly LockType[] {
  if (type !== null) return [type];
  return format === 'shared'
    ? LOCK_TYPES
    : LOCK_TYPES.filter((one) => one.startsWith('redisson') === (format === 'redisson'));
}

function companion(names: LockNames, suffix: 'queue' | 'fence' | 'waiters'): string {
  try {
    return names.companion(suffix);
  } catch {
    return ''; // its braces make no hash tag: it has none
  }
}
