import type { createClient } from 'redis';
import { REGISTRY_KEY } from './settings';

export type AdminClient = ReturnType<typeof createClient>;

/** An owner value: `<name>:<random>:<number>`, and whatever a lock type adds to it. */
const OWNER = /^.+[:/][\w-]{22}:\d+/;

/** What is kept beside a lock, but for Redisson's counter, which would begin again, and marks for commands that are repeated. */
export const COMPANION = /^\{.*\}:(fence|queue|tickets|waiters)$|^redisson_lock_(queue|timeout):/;

/** One owner value in Redis: as a holder, or as a waiter in a queue. */
export interface Entry {
  readonly name: string;
  readonly owner: string;
  readonly isLock: boolean;
  /** ms; -1: it does not expire. */
  readonly ttl: number;
}

export interface RedisContent {
  readonly entries: readonly Entry[];
  /** Keys without expiry, but for those that have none in Redisson's format. */
  readonly endless: readonly string[];
}

/** Everything on the server, which nobody but the soak uses. */
export async function readContent(admin: AdminClient): Promise<RedisContent> {
  const names = await admin.keys('*');
  const keys = await Promise.all(
    names.map(async (name) => {
      const [ttl, owners, ends] = await Promise.all([admin.pTTL(name), ownersIn(admin, name), endsIn(admin, name)]);
      return { name, ttl, owners, ends };
    }),
  );
  const present = keys.filter(({ ttl }) => ttl !== -2);
  return {
    entries: present.flatMap(({ name, ttl, owners, ends }) => {
      const isLock = isLockName(name);
      // Whatever is the value of a lock's key, it keeps others out.
      return (
        owners
          .filter((owner) => isLock || OWNER.test(owner))
          .map((owner): Entry => ({ name, owner, isLock, ttl: (ends.get(owner) ?? Date.now() + ttl) - Date.now() }))
          // What has ended is removed by the next caller.
          .filter((entry) => !ends.has(entry.owner) || entry.ttl > 0)
      );
    }),
    endless: present
      .filter(({ name, ttl }) => ttl === -1 && !/^redisson_lock_(queue|timeout|token):/.test(name))
      .map(({ name }) => name),
  };
}

/** How many scripts the server has executed. */
export async function countScripts(admin: AdminClient): Promise<number> {
  const stats = await admin.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** The name of a lock's key, and not of one of its companions. */
function isLockName(name: string): boolean {
  return name.startsWith(`${REGISTRY_KEY}:`) && !name.includes('{');
}

/** The key of the application whose lock has this name. */
export function keyOf(name: string): string {
  return name.slice(REGISTRY_KEY.length + 1);
}

/** Whether the key belongs to this lock: its name as it is, or wrapped in braces. */
export function belongsTo(name: string, key: string): boolean {
  const lock = `${REGISTRY_KEY}:${key}`;
  return name === lock || name.includes(`{${lock}}`);
}

/** When each lease of a shared lock ends, epoch ms. The server has the clock of this machine. */
async function endsIn(admin: AdminClient, name: string): Promise<ReadonlyMap<string, number>> {
  if (!isLockName(name)) return new Map();
  const members = await admin.zRangeWithScores(name, 0, -1).catch(() => []); // a lock of another type
  return new Map(members.map(({ value, score }) => [value, score]));
}

async function ownersIn(admin: AdminClient, name: string): Promise<string[]> {
  try {
    switch (await admin.type(name)) {
      case 'string':
        return [(await admin.get(name)) ?? ''];
      case 'hash':
        return await admin.hKeys(name);
      case 'list':
        return await admin.lRange(name, 0, -1);
      case 'zset':
        return await admin.zRange(name, 0, -1);
      default:
        return [];
    }
  } catch {
    return []; // it expired and became another type in between
  }
}
