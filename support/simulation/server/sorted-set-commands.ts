import { range } from './collection-commands';
import type { CommandContext, CommandTable } from './commands';
import type { Keyspace } from './keyspace';
import { CommandError, type Reply } from './reply';

function score(text: string | undefined): number {
  const value = text === '+inf' ? Number.POSITIVE_INFINITY : text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text);
  if (text === undefined || text === '' || Number.isNaN(value))
    throw new CommandError({ err: 'ERR value is not a valid float' });
  return value;
}

function scoreText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? 'inf' : '-inf';
}

/** By score, and of one score by the text of the member. */
export function sorted(keys: Keyspace, key: string): [member: string, score: number][] {
  return [...(keys.get(key, 'zset') ?? [])].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
}

function add({ keys }: CommandContext, [key = '', ...args]: readonly string[]): Reply {
  const options = new Set<string>();
  while (/^(nx|xx|gt|lt|ch)$/i.test(args[0] ?? '')) options.add((args.shift() ?? '').toUpperCase());
  if (args.length === 0 || args.length % 2 !== 0) throw new CommandError({ err: 'ERR syntax error' });
  const before = keys.get(key, 'zset');
  if (before === undefined && options.has('XX')) return 0;
  const set = keys.obtain(key, 'zset');
  let [added, changed] = [0, 0];
  for (let i = 0; i < args.length; i += 2) {
    const next = score(args[i]);
    const member = args[i + 1] as string;
    const old = set.get(member);
    if (old === undefined ? options.has('XX') : options.has('NX')) continue;
    if (old !== undefined && ((options.has('GT') && next <= old) || (options.has('LT') && next >= old))) continue;
    if (old === undefined) added++;
    else if (old !== next) changed++;
    set.set(member, next);
  }
  keys.dropIfEmpty(key, set.size);
  return options.has('CH') ? added + changed : added;
}

function removeMembers({ keys }: CommandContext, [key = '', ...members]: readonly string[]): Reply {
  const set = keys.get(key, 'zset');
  if (set === undefined) return 0;
  const removed = members.filter((member) => set.delete(member)).length;
  keys.dropIfEmpty(key, set.size);
  return removed;
}

function listed(entries: readonly (readonly [string, number])[], options: readonly string[]): Reply {
  const withScores = options.some((option) => option.toUpperCase() === 'WITHSCORES');
  return withScores
    ? entries.flatMap(([member, value]) => [member, scoreText(value)])
    : entries.map(([member]) => member);
}

function byIndex({ keys }: CommandContext, [key = '', start = '', stop = '', ...options]: readonly string[]): Reply {
  const unknown = options.find((option) => option.toUpperCase() !== 'WITHSCORES');
  if (unknown !== undefined) throw new CommandError({ err: 'ERR syntax error' });
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

function byScore({ keys }: CommandContext, [key = '', least, most, ...options]: readonly string[]): Reply {
  const found = within(keys, key, least, most);
  const limit = options.findIndex((option) => option.toUpperCase() === 'LIMIT');
  if (limit < 0) return listed(found, options);
  const [from, count] = [Number(options[limit + 1]), Number(options[limit + 2])];
  return listed(found.slice(from, count < 0 ? undefined : from + count), options);
}

function increase({ keys }: CommandContext, [key = '', by, member = '']: readonly string[]): Reply {
  const set = keys.obtain(key, 'zset');
  const next = (set.get(member) ?? 0) + score(by);
  set.set(member, next);
  return scoreText(next);
}

export const sortedSetCommands: CommandTable = {
  ZADD: [3, add],
  ZREM: [2, removeMembers],
  ZCARD: [1, ({ keys }, [key = '']) => keys.get(key, 'zset')?.size ?? 0],
  ZSCORE: [
    2,
    ({ keys }, [key = '', member = '']) => {
      const found = keys.get(key, 'zset')?.get(member);
      return found === undefined ? null : scoreText(found);
    },
  ],
  ZRANK: [
    2,
    ({ keys }, [key = '', member = '']) => {
      const rank = sorted(keys, key).findIndex(([one]) => one === member);
      return rank < 0 ? null : rank;
    },
  ],
  ZRANGE: [3, byIndex],
  ZRANGEBYSCORE: [3, byScore],
  ZREMRANGEBYSCORE: [
    3,
    (context, [key = '', least, most]) => {
      const members = within(context.keys, key, least, most).map(([member]) => member);
      return removeMembers(context, [key, ...members]);
    },
  ],
  ZINCRBY: [3, increase],
};
