import {
  type Companion,
  type LockFormat,
  type LockType,
  type SharedKind,
  traitsOf,
  typesOf,
} from '../../api/lock-types';
import { isOfLibrary } from '../../api/owner-name';
import type { LockNames } from '../../redis/names';

/*
 * What is in the keys of locks, for people: how the locks of a kind are found on a server, by commands that only read. One
 * look has several commands, and between them a lock may change hands. `LockInspector` reads one lock at one moment.
 */

/** `remaining` as PTTL answers: -2, or `null` where it was refused: it is free by now; -1: it has no expiry. */
export interface Owner {
  readonly owner: string;
  readonly remaining: number | null;
}

/** In its order. `since`: ms, by the server's clock. */
export type Queue = readonly { readonly owner: string; readonly kind?: SharedKind; readonly since?: number }[];

/** What is read of a lock. Its times are the server's, in ms. `null`: not known, or there is none. */
export interface Seen {
  /** All that have it, first the one whose lease lasts longest; nobody: somebody waits for it, or it is free. */
  readonly owners: readonly Owner[];
  readonly kind?: 'lock' | SharedKind;
  readonly type?: LockType | null;
  /** As in `FoundLock`. */
  readonly isSure?: boolean;
  readonly isCertain?: boolean;
  /** Whose lock it is, where that is another library; absent: the form of the owner value says it. */
  readonly others?: string | undefined;
  readonly permits?: number | null;
  readonly fencingToken?: number | null;
  /** The connections that listen for its release; `undefined`: the waiters are in the queue. */
  readonly listeners?: number | null | undefined;
  readonly queue?: Queue;
}

/** Who listens, on all servers: each of a cluster only knows its own. */
export interface Heard {
  /** How many, to `LockNames.channel` by the name of the lock, or to any other channel. `null`: none, as far as is known. */
  of(lockOrChannel: string): number | null;
  /** Whether somebody does, on a server that says it. */
  has(lockOrChannel: string): boolean;
  /** Whether somebody listens to a channel `<companion>:…`. */
  below(companion: string): boolean;
}

/** Reads keys of one server. */
export interface Reader {
  readonly heard: Heard;
  /** Only locks of one registry are looked for, or one by its name: what has such a name is one, if it may be. */
  readonly isOfRegistry: boolean;
  /** ms since 1970, by the server's clock. */
  now(): number;
  /** `null`: there is no such key, it is of another type, or its name is ''. */
  ask(...command: string[]): Promise<unknown>;
}

/** What finds the locks of one format. */
export interface Look {
  /** As TYPE answers about the key of a lock. */
  readonly keyType: string;
  /** In Lua: ends with `return`, and true where the key `name` may be a lock. See `CANDIDATES` for what it may use. */
  readonly mayBeLock: string;
  /** Globs for the channels whose listeners are counted; on a cluster, `sharded` ones too. */
  readonly channels: readonly string[];
  readonly sharded?: readonly string[];
  readonly queue: KeyOfQueue | undefined;
  /** Whether a key of this name belongs to a lock, though a lock may be named like that. */
  isBeside?(name: string): boolean;
  /** `undefined`: the key is none of its locks. */
  held(names: LockNames, reader: Reader): Promise<Seen | undefined>;
  /** Nobody has the lock: its waiters. */
  waitedFor?(names: LockNames, reader: Reader): Promise<Seen | undefined>;
}

/** The key that shows that somebody waits for a lock, while there is no key of the lock. */
export interface KeyOfQueue {
  readonly keyType: string;
  /** A pattern of Lua for its name. */
  readonly pattern: string;
  /** `undefined`: the key is no queue. */
  lockOf(name: string): string | undefined;
}

/** The queue of a type whose locks are written as those of another type. */
export interface QueueLook extends KeyOfQueue {
  readonly type: LockType;
  readonly channels: readonly string[];
  read(names: LockNames, reader: Reader): Promise<Queue>;
  /** As in `OneOwner`, of locks with this queue. */
  readonly othersName?: string;
  /** Nobody waits, and yet it is this type. */
  isSeen?(names: LockNames, owner: string, reader: Reader): boolean;
}

/** Locks that one owner has at a time. */
export interface OneOwner extends Pick<Look, 'mayBeLock' | 'channels' | 'sharded' | 'isBeside'> {
  /** Reads the owner value. */
  owner(names: LockNames, reader: Reader): Promise<string | undefined>;
  /** The owner values of other libraries. Data of an application may have this form. */
  readonly others: RegExp;
  /** What the only other library with such owner values is called. */
  readonly othersName?: string;
  /** Under a registryKey that is asked for, a key with any value keeps everybody out, and is shown. */
  readonly showsAll?: true;
  /** A key without an expiry is shown if there is a key that belongs to it. */
  readonly mayLast?: true;
  /** The counter of fencing tokens. */
  counter(names: LockNames): string;
  /** As `Heard.of` has it. Any text where nobody can listen. */
  channel(names: LockNames): string;
  /** The type that listeners prove. */
  readonly notified?: LockType;
}

/**
 * Owner values of this library are proof of a lock. Others may be data of an application: `hasForm` and a key that belongs to
 * the lock, somebody who listens for its release, or the registryKey that was asked for, make it one.
 */
export function oneOwner(name: LockFormat, format: OneOwner, queue?: QueueLook): Look {
  return {
    ...format,
    keyType: traitsOf(typesOf(name)[0] as LockType).keyType,
    channels: [...format.channels, ...(queue?.channels ?? [])],
    queue,
    async held(names, reader) {
      const { heard, isOfRegistry } = reader;
      const owner = await format.owner(names, reader);
      if (owner === undefined) return undefined;
      const isOurs = isOfLibrary(owner);
      const isOthers = format.others.test(owner);
      if (!isOurs && !isOthers && !(format.showsAll && isOfRegistry)) return undefined;
      const [remaining, fencingToken, waiters = []] = await Promise.all([
        numberOf(reader, 'PTTL', names.lock),
        numberOf(reader, 'GET', format.counter(names)),
        queue?.read(names, reader),
      ]);
      // A lock expires. Data of an application does not, more often than not.
      const hasForm = isOthers && remaining !== -1;
      const channel = format.channel(names);
      const listeners = heard.of(channel);
      const isProven = fencingToken !== null || waiters.length > 0 || heard.has(channel);
      if (!isOurs && !isOfRegistry && !hasForm && !(format.mayLast && isProven)) return undefined;
      const isQueued = waiters.length > 0 || queue?.isSeen?.(names, owner, reader);
      return {
        owners: [{ owner, remaining }],
        isSure: isOurs || (hasForm && (isProven || isOfRegistry)),
        isCertain: isOurs || (hasForm && isProven),
        others: isOthers ? (isQueued && queue?.othersName) || format.othersName : undefined,
        type: isQueued ? (queue?.type ?? null) : listeners ? (format.notified ?? null) : null,
        listeners: isQueued ? undefined : listeners,
        queue: waiters,
        fencingToken,
      };
    },
    async waitedFor(names, reader) {
      const waiters = (await queue?.read(names, reader)) ?? [];
      return queue && waiters.length > 0 ? { owners: [], type: queue.type, queue: waiters } : undefined;
    },
  };
}

/** The lock that has the companion key of this name; `undefined`: it is none with this suffix. */
export function lockOfCompanion(name: string, suffix: Companion): string | undefined {
  const [, tag, its, lock = tag] = /^\{([^}]+)\}:([^:]+)(?::(.+))?$/s.exec(name) ?? [];
  return its === suffix ? lock : undefined;
}

/** '': the braces in the name of the lock make no hash tag, so it has none. */
export function companion(names: LockNames, suffix: Companion): string {
  return names.companionOrNone(suffix) ?? '';
}

/** bytes that are read of a value. No owner value is longer. */
const MOST_READ = 256;

/** How the value of a string begins. `undefined`: it is none. */
export async function beginningOf({ ask }: Pick<Reader, 'ask'>, name: string): Promise<string | undefined> {
  const text = await ask('GETRANGE', name, '0', String(MOST_READ - 1));
  if (typeof text !== 'string') return undefined;
  // Of a longer one, what is read may end within a character.
  return Buffer.byteLength(text) < MOST_READ ? text : text.replace(/\ufffd$/, '');
}

export async function numberOf(reader: Reader, ...command: string[]): Promise<number | null> {
  const answer = await reader.ask(...command);
  return answer === null || Number.isNaN(Number(answer)) ? null : Number(answer);
}

export function listOf(answer: unknown): string[] {
  return Array.isArray(answer) ? answer.map(String) : [];
}

/** The pairs of a reply: clients make lists of it, lists of lists, lists of `{ key, value }`, objects or maps. */
export function pairsOf(answer: unknown): (readonly [string, string])[] {
  if (answer instanceof Map) return pairsOf([...answer]);
  if (!Array.isArray(answer)) return pairsOf(Object.entries(answer ?? {}));
  const flat = answer.flatMap((one) => (typeof one === 'object' && 'key' in one ? [one.key, one.value] : one));
  return flat.flatMap((one, i) => (i % 2 === 0 ? [[String(one), String(flat[i + 1])]] : []));
}
