import { LuaError } from './value';

/** A capture: its text, or with `()` the position. */
export type Capture = string | number;

export interface Match {
  /** From 0; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
  /** Without a capture in the pattern: the whole match. */
  readonly captures: readonly Capture[];
}

const POSITION = -2;
const OPEN = -1;

const CLASSES: Record<string, RegExp> = {
  a: /[A-Za-z]/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is the class of control characters
  c: /[\0-\x1f\x7f]/,
  d: /[0-9]/,
  l: /[a-z]/,
  p: /[!-/:-@[-`{-~]/,
  s: /[\t-\r ]/,
  u: /[A-Z]/,
  w: /[A-Za-z0-9]/,
  x: /[A-Fa-f0-9]/,
};

/** The first match at or after `from`; `undefined`: none. A pattern of Lua 5.1, without `%b` and `%f`. */
export function findPattern(text: string, pattern: string, from: number): Match | undefined {
  const isAnchored = pattern.startsWith('^');
  for (let start = from; start <= text.length; start++) {
    const matcher = new Matcher(text, pattern);
    const end = matcher.match(start, isAnchored ? 1 : 0);
    if (end !== undefined) return { start, end, captures: matcher.captures(start, end) };
    if (isAnchored) return undefined;
  }
  return undefined;
}

/** As in Lua's own lstrlib.c: backtracking over the pattern's items. */
class Matcher {
  readonly #text: string;
  readonly #pattern: string;
  readonly #captures: { start: number; length: number }[] = [];

  constructor(text: string, pattern: string) {
    this.#text = text;
    this.#pattern = pattern;
  }

  captures(start: number, end: number): Capture[] {
    if (this.#captures.length === 0) return [this.#text.slice(start, end)];
    return this.#captures.map((capture) =>
      capture.length === POSITION ? capture.start + 1 : this.#text.slice(capture.start, capture.start + capture.length),
    );
  }

  match(at: number, item: number): number | undefined {
    const pattern = this.#pattern;
    if (item === pattern.length) return at;
    const char = pattern[item];
    if (char === '(') return this.#open(at, item);
    if (char === ')') return this.#close(at, item);
    if (char === '$' && item + 1 === pattern.length) return at === this.#text.length ? at : undefined;
    if (char === '%' && /[bf0-9]/.test(pattern[item + 1] ?? '')) {
      throw new LuaError(`the simulation has no pattern item %${pattern[item + 1]}`);
    }
    const after = this.#endOfItem(item);
    const suffix = pattern[after];
    if (suffix === '*') return this.#longest(at, item, after, 0);
    if (suffix === '+') return this.#longest(at, item, after, 1);
    if (suffix === '-') return this.#shortest(at, item, after);
    const isHere = this.#fits(at, item, after);
    if (suffix === '?') {
      return (isHere ? this.match(at + 1, after + 1) : undefined) ?? this.match(at, after + 1);
    }
    return isHere ? this.match(at + 1, after) : undefined;
  }

  #open(at: number, item: number): number | undefined {
    const isPosition = this.#pattern[item + 1] === ')';
    this.#captures.push({ start: at, length: isPosition ? POSITION : OPEN });
    const end = this.match(at, item + (isPosition ? 2 : 1));
    if (end === undefined) this.#captures.pop();
    return end;
  }

  #close(at: number, item: number): number | undefined {
    const capture = this.#captures.findLast(({ length }) => length === OPEN);
    if (capture === undefined) throw new LuaError('invalid pattern capture');
    capture.length = at - capture.start;
    const end = this.match(at, item + 1);
    if (end === undefined) capture.length = OPEN;
    return end;
  }

  #longest(at: number, item: number, after: number, least: number): number | undefined {
    let count = 0;
    while (this.#fits(at + count, item, after)) count++;
    for (; count >= least; count--) {
      const end = this.match(at + count, after + 1);
      if (end !== undefined) return end;
    }
    return undefined;
  }

  #shortest(at: number, item: number, after: number): number | undefined {
    for (let here = at; ; here++) {
      const end = this.match(here, after + 1);
      if (end !== undefined) return end;
      if (!this.#fits(here, item, after)) return undefined;
    }
  }

  #endOfItem(item: number): number {
    const pattern = this.#pattern;
    if (pattern[item] === '%') return item + 2;
    if (pattern[item] !== '[') return item + 1;
    let at = item + (pattern[item + 1] === '^' ? 2 : 1);
    do {
      if (at >= pattern.length) throw new LuaError("malformed pattern (missing ']')");
      at += pattern[at] === '%' ? 2 : 1;
    } while (pattern[at] !== ']');
    return at + 1;
  }

  #fits(at: number, item: number, after: number): boolean {
    const char = this.#text[at];
    if (char === undefined) return false;
    const kind = this.#pattern[item];
    if (kind === '.') return true;
    if (kind === '%') return isOfClass(char, this.#pattern[item + 1] ?? '');
    return kind === '[' ? this.#isInSet(char, item + 1, after - 1) : kind === char;
  }

  #isInSet(char: string, from: number, end: number): boolean {
    const pattern = this.#pattern;
    const isNegated = pattern[from] === '^';
    for (let at = from + (isNegated ? 1 : 0); at < end; at++) {
      const low = pattern[at] ?? '';
      const high = pattern[at + 2] ?? '';
      if (low === '%') {
        at++;
        if (isOfClass(char, pattern[at] ?? '')) return !isNegated;
      } else if (pattern[at + 1] === '-' && at + 2 < end) {
        at += 2;
        if (low <= char && char <= high) return !isNegated;
      } else if (low === char) {
        return !isNegated;
      }
    }
    return isNegated;
  }
}

function isOfClass(char: string, name: string): boolean {
  const chars = CLASSES[name.toLowerCase()];
  if (chars === undefined) return name === char;
  return chars.test(char) === (name === name.toLowerCase());
}
