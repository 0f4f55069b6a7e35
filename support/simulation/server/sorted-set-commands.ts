import { range } from './collection-commands';
import type { CommandContext, CommandTable } from './commands';
import type { Keyspace } from './keyspace';
import { CommandError, type Reply, syntaxError } from './reply';

function score(text: string | undefined): number {
  const value = text === '+inf' ? Number.POSITIVE_INFINITY : text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text);
  if (text === undefined || text === '' || Number.isNaN(value))
    throw new CommandError({ err: 'ERR value is not a valid float' });
  return value;
}

/** By score, and of one score by the text of the member. */
function sorted(keys: Keyspace, key: string): [member: string, score: number][] {
  return [...(keys.get(key, 'zset') ?? [])].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
}

function add({ keys }: CommandContext, [key = '', ...args]: readonly string[]): Reply {
  const isUpdate = args[0] === 'XX';
  const isNew = args[0] === 'NX';
  const pairs = isUpdate || isNew ? args.slice(1) : args;
  if (pairs.length === 0 || pairs.length % 2 !== 0) throw syntaxError();
  if (isUpdate && keys.get(key, 'zset') === undefined) return 0;
  const set = keys.obtain(key, 'zset');
  const before = set.size;
  for (let i = 0; i < pairs.length; i += 2) {
    const next = score(pairs[i]);
    const member = pairs[i + 1] as string;
    if (set.has(member) ? !isNew : !isUpdate) set.set(member, next);
  }
  keys.dropIfEmpty(key, set.size);
  return set.size - before;
}

function removeMembers({ keys }: CommandContext, [key = '', ...members]: readonly string[]): Reply {
  const set = keys.get(key, 'zset');
  if (set === undefined) return 0;
  const removed = members.filter((member) => set.delete(member)).length;
  keys.dropIfEmpty(key, set.size);
  return removed;
}

function listed(entries: readonly (readonly [string, number])[], options: readonly string[]): Reply {
  if (options.some((option) => option !== 'WITHSCORES')) throw syntaxError();
  return options.length > 0
    ? entries.flatMap(([member, value]) => [member, String(value)])
    : entries.map(([member]) => member);
}

function byIndex({ keys }: CommandContext, [key = '', start = '', stop = '', ...options]: readonly string[]): Reply {
  const entries = sorted(keys, key);
  return listed(entries.slice(...range(entries.length, start, stop)), options);
}

function within(keys: Keyspace, key: string, least: string | undefined, most: string | undefined): [string, number][] {
  const isExclusive = (text: string | undefined): boolean => text?.startsWith('(') ?? false;
  const [low, high] = [score(least?.replace('(', '')), score(most?.replace('(', ''))];
  return sorted(keys, key).filter(
    ([, value]) =>
      (isExclusive(least) ? value > low : value >= low) && (isExclusive(most) ? value < high : value <= high),
  );
}

function increase({ keys }: CommandContext, [key = '', by, member = '']: readonly string[]): Reply {
  const set = keys.obtain(key, 'zset');
  const next = (set.get(member) ?? 0) + score(by);
  set.set(member, next);
  return String(next);
}

export const sortedSetCommands: CommandTable = {
  ZADD: [3, add],
  ZREM: [2, removeMembers],
  ZCARD: [1, ({ keys }, [key = '']) => keys.get(key, 'zset')?.size ?? 0],
  ZSCORE: [
    2,
    ({ keys }, [key = '', member = '']) => {
      const found = keys.get(key, 'zset')?.get(member);
      return found === undefined ? null : String(found);
    },
  ],
  ZRANGE: [3, byIndex],
  ZRANGEBYSCORE: [
    3,
    ({ keys }, [key = '', least, most, ...options]) => listed(within(keys, key, least, most), options),
  ],
  ZINCRBY: [3, increase],
};
