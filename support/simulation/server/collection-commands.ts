import type { CommandContext, CommandTable } from './commands';
import { CommandError, type Reply, syntaxError } from './reply';

function hashSet({ keys }: CommandContext, key: string, fields: readonly string[]): number {
  if (fields.length % 2 !== 0) throw new CommandError({ err: "ERR wrong number of arguments for 'hset' command" });
  const hash = keys.obtain(key, 'hash');
  const before = hash.size;
  for (let i = 0; i < fields.length; i += 2) hash.set(fields[i] as string, fields[i + 1] as string);
  return hash.size - before;
}

function hashDelete({ keys }: CommandContext, key: string, fields: readonly string[]): number {
  const hash = keys.get(key, 'hash');
  if (hash === undefined) return 0;
  const deleted = fields.filter((field) => hash.delete(field)).length;
  keys.dropIfEmpty(key, hash.size);
  return deleted;
}

function pop({ keys }: CommandContext, key: string): Reply {
  const list = keys.get(key, 'list');
  const first = list?.shift();
  if (list !== undefined) keys.dropIfEmpty(key, list.length);
  return first ?? null;
}

function remove({ keys }: CommandContext, [key = '', count, value]: readonly string[]): number {
  if (count !== '0') throw syntaxError();
  const list = keys.get(key, 'list') ?? [];
  const others = list.filter((one) => one !== value);
  const removed = list.length - others.length;
  list.splice(0, list.length, ...others);
  if (removed > 0) keys.dropIfEmpty(key, list.length);
  return removed;
}

/** The part of a list of `length` from `start` to `stop`, both included; negative ones count from the end. */
export function range(length: number, start: string, stop: string): readonly [from: number, end: number] {
  const from = Number(start) < 0 ? length + Number(start) : Number(start);
  const to = Number(stop) < 0 ? length + Number(stop) : Number(stop);
  return [Math.max(0, from), Math.min(length, to + 1)];
}

/** Hashes and lists. */
export const collectionCommands: CommandTable = {
  HGET: [2, ({ keys }, [key = '', field = '']) => keys.get(key, 'hash')?.get(field) ?? null],
  HSET: [3, (context, [key = '', ...fields]) => hashSet(context, key, fields)],
  HDEL: [2, (context, [key = '', ...fields]) => hashDelete(context, key, fields)],
  HEXISTS: [2, ({ keys }, [key = '', field = '']) => (keys.get(key, 'hash')?.has(field) ? 1 : 0)],
  HLEN: [1, ({ keys }, [key = '']) => keys.get(key, 'hash')?.size ?? 0],
  HKEYS: [1, ({ keys }, [key = '']) => [...(keys.get(key, 'hash')?.keys() ?? [])]],
  HGETALL: [1, ({ keys }, [key = '']) => [...(keys.get(key, 'hash') ?? [])].flat()],
  HMGET: [
    2,
    ({ keys }, [key = '', ...fields]) => {
      const hash = keys.get(key, 'hash');
      return fields.map((field) => hash?.get(field) ?? null);
    },
  ],
  RPUSH: [2, ({ keys }, [key = '', ...values]) => keys.obtain(key, 'list').push(...values)],
  LPOP: [1, (context, [key = '']) => pop(context, key)],
  LLEN: [1, ({ keys }, [key = '']) => keys.get(key, 'list')?.length ?? 0],
  LINDEX: [2, ({ keys }, [key = '', at = '']) => keys.get(key, 'list')?.at(Number(at)) ?? null],
  LREM: [3, remove],
  LRANGE: [
    3,
    ({ keys }, [key = '', start = '', stop = '']) => {
      const list = keys.get(key, 'list') ?? [];
      return list.slice(...range(list.length, start, stop));
    },
  ],
};
