import { numberToText, toNumber } from './numbers';
import { LuaError, type LuaFunction, LuaTable, type LuaValue, typeOf } from './value';

export function isTrue(value: LuaValue): boolean {
  return value !== undefined && value !== false;
}

function operand(value: LuaValue): number {
  const number = toNumber(value);
  if (number === undefined) throw new LuaError(`attempt to perform arithmetic on a ${typeOf(value)} value`);
  return number;
}

/** What compiled code calls, by these short names. */
export class Operators {
  /** The line of the script that is being executed, as far as calls tell. */
  line = 0;
  strings: LuaTable = new LuaTable();
  readonly isTrue = isTrue;

  add(a: LuaValue, b: LuaValue): number {
    return typeof a === 'number' && typeof b === 'number' ? a + b : operand(a) + operand(b);
  }

  sub(a: LuaValue, b: LuaValue): number {
    return operand(a) - operand(b);
  }

  mul(a: LuaValue, b: LuaValue): number {
    return operand(a) * operand(b);
  }

  div(a: LuaValue, b: LuaValue): number {
    return operand(a) / operand(b);
  }

  mod(a: LuaValue, b: LuaValue): number {
    const [x, y] = [operand(a), operand(b)];
    return x - Math.floor(x / y) * y;
  }

  pow(a: LuaValue, b: LuaValue): number {
    return operand(a) ** operand(b);
  }

  negate(a: LuaValue): number {
    return -operand(a);
  }

  length(a: LuaValue): number {
    if (typeof a === 'string') return a.length;
    if (a instanceof LuaTable) return a.length;
    throw new LuaError(`attempt to get length of a ${typeOf(a)} value`);
  }

  concat(a: LuaValue, b: LuaValue): string {
    return textOperand(a) + textOperand(b);
  }

  lessThan(a: LuaValue, b: LuaValue): boolean {
    if (typeof a === 'number' && typeof b === 'number') return a < b;
    if (typeof a === 'string' && typeof b === 'string') return a < b;
    throw notComparable(a, b);
  }

  atMost(a: LuaValue, b: LuaValue): boolean {
    if (typeof a === 'number' && typeof b === 'number') return a <= b;
    if (typeof a === 'string' && typeof b === 'string') return a <= b;
    throw notComparable(a, b);
  }

  index(base: LuaValue, key: LuaValue): LuaValue {
    if (base instanceof LuaTable) return base.get(key);
    if (typeof base === 'string') return this.strings.get(key);
    throw new LuaError(`attempt to index a ${typeOf(base)} value`);
  }

  setIndex(base: LuaValue, key: LuaValue, value: LuaValue): void {
    if (!(base instanceof LuaTable)) throw new LuaError(`attempt to index a ${typeOf(base)} value`);
    base.set(key, value);
  }

  /** The function that is about to be called. */
  callee(value: LuaValue, line: number): LuaFunction {
    if (typeof value !== 'function') throw new LuaError(`attempt to call a ${typeOf(value)} value`);
    this.line = line;
    return value;
  }

  forNumber(value: LuaValue): number {
    const number = toNumber(value);
    if (number === undefined) throw new LuaError("'for' values must be numbers");
    return number;
  }

  /** A table constructor: the list part, and the fields with a key. */
  table(list: LuaValue[], fields: readonly (readonly [LuaValue, LuaValue])[]): LuaTable {
    const table = new LuaTable(list);
    for (const [key, value] of fields) table.set(key, value);
    return table;
  }
}

function notComparable(a: LuaValue, b: LuaValue): LuaError {
  const [left, right] = [typeOf(a), typeOf(b)];
  return new LuaError(
    left === right ? `attempt to compare two ${left} values` : `attempt to compare ${left} with ${right}`,
  );
}

function textOperand(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return numberToText(value);
  throw new LuaError(`attempt to concatenate a ${typeOf(value)} value`);
}
