import type { CommandContext, CommandTable } from './commands';
import { CommandError, type Reply } from './reply';

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

function push({ keys }: CommandContext, key: string, values: readonly string[], toFront: boolean): number {
  const list = keys.obtain(key, 'list');
  for (const value of values) {
    if (toFront) list.unshift(value);
    else list.push(value);
  }
  return list.length;
}

function pop({ keys }: CommandContext, key: string): Reply {
  const list = keys.get(key, 'list');
  const first = list?.shift();
  if (list !== undefined) keys.dropIfEmpty(key, list.length);
  return first ?? null;
}

function remove({ keys }: CommandContext, key: string, count: number, value: string): number {
  const list = keys.get(key, 'list');
  if (list === undefined) return 0;
  const most = count === 0 ? list.length : Math.abs(count);
  let removed = 0;
  for (let step = 0, at = count < 0 ? list.length - 1 : 0, end = list.length; step < end && removed < most; step++) {
    if (list[at] === value) {
      list.splice(at, 1);
      removed++;
      if (count < 0) at--;
    } else {
      at += count < 0 ? -1 : 1;
    }
  }
  keys.dropIfEmpty(key, list.length);
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
  HSETNX: [
    3,
    (context, [key = '', field = '', value = '']) =>
      context.keys.get(key, 'hash')?.has(field) ? 0 : hashSet(context, key, [field, value]),
  ],
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
  LPUSH: [2, (context, [key = '', ...values]) => push(context, key, values, true)],
  RPUSH: [2, (context, [key = '', ...values]) => push(context, key, values, false)],
  LPOP: [1, (context, [key = '']) => pop(context, key)],
  LLEN: [1, ({ keys }, [key = '']) => keys.get(key, 'list')?.length ?? 0],
  LINDEX: [2, ({ keys }, [key = '', at = '']) => keys.get(key, 'list')?.at(Number(at)) ?? null],
  LREM: [3, (context, [key = '', count = '', value = '']) => remove(context, key, Number(count), value)],
  LRANGE: [
    3,
    ({ keys }, [key = '', start = '', stop = '']) => {
      const list = keys.get(key, 'list') ?? [];
      return list.slice(...range(list.length, start, stop));
    },
  ],
};
