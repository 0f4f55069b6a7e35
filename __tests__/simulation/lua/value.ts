/** The values of Lua 5.1: numbers are doubles, strings are sequences of bytes (here one UTF-16 unit for each). */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction;

/** Always returns a list: Lua functions have any number of results. */
export type LuaFunction = (...args: LuaValue[]) => readonly LuaValue[];

/** What `error` raises: any value. */
export class LuaError extends Error {
  readonly value: LuaValue;
  /** A runtime error is headed by its position; a raised table is not. */
  constructor(value: LuaValue) {
    super(typeof value === 'string' ? value : 'a Lua error that is no text');
    this.value = value;
  }
}

/** A table: the keys 1..n in an array, the others in a Map. Iterates the Map in the order of insertion. */
export class LuaTable {
  readonly array: LuaValue[];
  readonly hash = new Map<LuaValue, LuaValue>();

  constructor(array: LuaValue[] = []) {
    this.array = array;
    this.#trim();
  }

  get(key: LuaValue): LuaValue {
    if (typeof key === 'number' && key >= 1 && key <= this.array.length && Number.isInteger(key)) {
      return this.array[key - 1];
    }
    return this.hash.get(key);
  }

  set(key: LuaValue, value: LuaValue): void {
    if (typeof key === 'number' && key >= 1 && key <= this.array.length + 1 && Number.isInteger(key)) {
      this.#setInArray(key, value);
    } else if (key === undefined) {
      throw new LuaError('table index is nil');
    } else if (value === undefined) {
      this.hash.delete(key);
    } else {
      this.hash.set(key, value);
    }
  }

  /** The `#` operator. */
  get length(): number {
    return this.array.length;
  }

  #setInArray(key: number, value: LuaValue): void {
    if (key <= this.array.length) {
      this.array[key - 1] = value;
      this.#trim();
      return;
    }
    if (value === undefined) {
      this.hash.delete(key);
      return;
    }
    this.array.push(value);
    this.hash.delete(key);
    for (let next = this.array.length + 1; this.hash.has(next); next++) {
      this.array.push(this.hash.get(next));
      this.hash.delete(next);
    }
  }

  #trim(): void {
    while (this.array.length > 0 && this.array[this.array.length - 1] === undefined) this.array.pop();
  }
}

export function typeOf(value: LuaValue): string {
  if (value === undefined) return 'nil';
  return value instanceof LuaTable ? 'table' : typeof value;
}
