import { numberToText, toNumber } from './numbers';
import { LuaError, LuaTable, type LuaValue, typeOf } from './value';

/** The text of an argument of a library function. */
export function text(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberToText(value);
  return value === undefined ? 'nil' : String(value);
}

export function number(value: LuaValue, name: string): number {
  const converted = toNumber(value);
  if (converted === undefined) throw new LuaError(`bad argument to '${name}' (number expected, got ${typeOf(value)})`);
  return converted;
}

export function table(value: LuaValue, name: string): LuaTable {
  if (value instanceof LuaTable) return value;
  throw new LuaError(`bad argument to '${name}' (table expected, got ${typeOf(value)})`);
}
