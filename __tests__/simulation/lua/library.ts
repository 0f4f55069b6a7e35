import { number, table as tableArgument, text } from './arguments';
import { toNumber } from './numbers';
import { isTrue } from './operators';
import { stringLibrary } from './string-library';
import { LuaError, type LuaFunction, LuaTable, type LuaValue, typeOf } from './value';

/** The globals of a script, without KEYS, ARGV and `redis`: the parts of Lua's library that lock scripts use. */
export function library(): Map<string, LuaValue> {
  const string = tableOf(stringLibrary);
  return new Map<string, LuaValue>([
    ...Object.entries(basic),
    ['string', string],
    ['math', tableOf(math)],
    ['table', tableOf(table)],
  ]);
}

export function tableOf(entries: Record<string, LuaValue>): LuaTable {
  const table = new LuaTable();
  for (const [name, value] of Object.entries(entries)) table.set(name, value);
  return table;
}

const nextPair: LuaFunction = (of, index = 0) => {
  const position = (index as number) + 1;
  const value = tableArgument(of, 'ipairs').get(position);
  return value === undefined ? [] : [position, value];
};

const basic: Record<string, LuaFunction> = {
  type: (value) => [typeOf(value)],
  tostring: (value) => [text(value)],
  tonumber: (value) => [toNumber(value)],
  ipairs: (of) => [nextPair, of, 0],
  pairs: (of) => {
    const entries = tableArgument(of, 'pairs');
    const all = [...entries.array.entries()].map(([i, value]): [LuaValue, LuaValue] => [i + 1, value]);
    const rest = [...all.filter(([, value]) => value !== undefined), ...entries.hash].values();
    return [(): readonly LuaValue[] => rest.next().value ?? []];
  },
  unpack: (of, from = 1, to = undefined) => {
    const list = tableArgument(of, 'unpack');
    const [first, last] = [from as number, (to as number | undefined) ?? list.length];
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => list.get(first + i));
  },
  select: (which, ...rest) => (which === '#' ? [rest.length] : rest.slice(number(which, 'select') - 1)),
  error: (value) => {
    throw new LuaError(value);
  },
  assert: (...values) => {
    if (isTrue(values[0])) return values;
    throw new LuaError(values[1] ?? 'assertion failed!');
  },
  pcall: (called, ...args) => {
    try {
      if (typeof called !== 'function') throw new LuaError(`attempt to call a ${typeOf(called)} value`);
      return [true, ...called(...args)];
    } catch (error) {
      if (error instanceof LuaError) return [false, raised(error.value)];
      throw error;
    }
  },
};

/** Redis 7 has a `pcall` of its own, which gives the text of an error that a command raised. */
function raised(value: LuaValue): LuaValue {
  return value instanceof LuaTable ? (value.get('err') ?? value) : value;
}

const math: Record<string, LuaValue> = {
  huge: Number.POSITIVE_INFINITY,
  abs: (value) => [Math.abs(number(value, 'abs'))],
  ceil: (value) => [Math.ceil(number(value, 'ceil'))],
  floor: (value) => [Math.floor(number(value, 'floor'))],
  max: (...values) => [Math.max(...values.map((value) => number(value, 'max')))],
  min: (...values) => [Math.min(...values.map((value) => number(value, 'min')))],
};

const table: Record<string, LuaFunction> = {
  insert: (of, ...rest) => {
    const list = tableArgument(of, 'insert');
    const at = rest.length > 1 ? number(rest[0], 'insert') : list.length + 1;
    list.array.splice(at - 1, 0, rest.at(-1));
    return [];
  },
  remove: (of, at) => {
    const list = tableArgument(of, 'remove');
    return list.length === 0 ? [] : list.array.splice((at === undefined ? list.length : number(at, 'remove')) - 1, 1);
  },
  concat: (of, separator = '') => [tableArgument(of, 'concat').array.map(text).join(text(separator))],
  sort: (of, isLess) => {
    const { array } = tableArgument(of, 'sort');
    const less = (one: LuaValue, other: LuaValue): boolean => {
      if (typeof isLess === 'function') return isTrue(isLess(one, other)[0]);
      return (one as number | string) < (other as number | string);
    };
    array.sort((one, other) => (less(one, other) ? -1 : less(other, one) ? 1 : 0));
    return [];
  },
  getn: (of) => [tableArgument(of, 'getn').length],
};
