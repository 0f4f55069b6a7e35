import { inspect } from 'node:util';
import { MAX_DELAY, MIN_RENEWED_TTL, MIN_TTL } from './clock';

/** Checks one value: returns it, or throws `TypeError` or `RangeError`. */
export type Check<T> = (name: string, value: unknown) => T;

/** Options as other libraries call them, or as ours are called elsewhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  timeout: 'waitTime',
  acquireTimeout: 'waitTime',
  leaseTime: 'ttl',
  lockTimeout: 'ttl',
  expireAfter: 'ttl',
  ttl: 'expireAfter',
  retryDelay: 'idleBetweenTries',
};

/** A check for each option of a type. */
export type Checks<T> = { readonly [Name in keyof T]-?: Check<T[Name]> };

/**
 * The options that were given, each read once, own or inherited, and checked: an object of its own, which nobody else
 * changes. Nothing reads an option elsewhere. Throws for one that is not known: a misspelt option must not silently do
 * nothing. An option that is `undefined` was not given.
 */
export function checkedOptions<T extends object>(checks: Checks<T>, options: T): T {
  // A text may be a token, or a URL with a password.
  const shown = typeof options === 'string' ? '…' : options;
  if (typeof options !== 'object' || options === null) throw new TypeError(expected('options', 'an object', shown));
  for (const name of namesIn(options)) {
    if (!Object.hasOwn(checks, name)) throw unknownOption(name, options[name as keyof T], Object.keys(checks));
  }
  const checked: Partial<T> = {};
  for (const name of Object.keys(checks) as (keyof T & string)[]) {
    const value = options[name];
    if (value !== undefined) checked[name] = checks[name](name, value);
  }
  return checked as T;
}

/** All names in an object and in what it inherits from: those of accessors and methods too. */
function namesIn(options: object): string[] {
  const names = Object.getOwnPropertyNames(options);
  let from: object | null = Object.getPrototypeOf(options);
  // The last one in the chain is the `Object.prototype` of some realm.
  for (let next: object | null; from !== null; from = next) {
    next = Object.getPrototypeOf(from);
    if (next !== null) names.push(...Object.getOwnPropertyNames(from).filter((name) => name !== 'constructor'));
  }
  return names;
}

function unknownOption(name: string, value: unknown, known: readonly string[]): TypeError {
  // Its value may be a secret: the `url` or the `password` of a client.
  const shown = typeof value === 'number' ? value : typeof value;
  const meant = ELSEWHERE[name];
  const nearest = meant !== undefined && known.includes(meant) ? meant : nearestTo(name, known);
  const hint = nearest === undefined ? '' : `; did you mean \`${nearest}\`?`;
  return new TypeError(inOneLine(`Unknown option \`${name}\` (${shown})${hint}; known are ${known.join(', ')}`));
}

/** The known name that was probably meant; `undefined`: none is near enough. */
export function nearestTo(name: string, known: readonly string[]): string | undefined {
  const near = known.map((one) => ({ one, edits: editsBetween(name.toLowerCase(), one.toLowerCase()) }));
  const [nearest] = near.sort((a, b) => a.edits - b.edits);
  return nearest !== undefined && nearest.edits <= nearest.one.length / 2 ? nearest.one : undefined;
}

/** How many characters have to be inserted, removed or replaced to make one text of the other (Levenshtein). */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, character] of [...from].entries()) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      const replaced = (row[j] ?? 0) + (character === to[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** Text that Redis keeps as it is. A lone surrogate would become another character, and with it another key. */
export function string(name: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(expected(name, 'a string', value));
  if (!value.isWellFormed()) throw new TypeError(expected(name, 'well-formed UTF-16 (it has a lone surrogate)', value));
  return value;
}

export function nonEmptyString(name: string, value: unknown): string {
  if (value === '') throw new TypeError(expected(name, 'a non-empty string', value));
  return string(name, value);
}

/** A positive number of ms that a timer and Redis can represent. */
export const duration = from(Number.MIN_VALUE, MAX_DELAY, `a positive number of milliseconds, at most ${MAX_DELAY}`);

/** Checks a duration that may be `Infinity`. */
export function durationOrNever(name: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? value : duration(name, value);
}

/** A number of ms for which a lease can work. */
export const ttl = from(MIN_TTL, MAX_DELAY, `a number of milliseconds from ${MIN_TTL} to ${MAX_DELAY}`);

/** Checks the ttl of a lease that the watchdog renews. */
export const renewedTtl = from(
  MIN_RENEWED_TTL,
  MAX_DELAY,
  `from ${MIN_RENEWED_TTL} to ${MAX_DELAY} ms for a lease that is renewed`,
);

/** A number of ms above 0; `Infinity` is one. */
export const positive = from(
  Number.MIN_VALUE,
  Number.POSITIVE_INFINITY,
  'a positive number of milliseconds, Infinity included',
);

/** A number of ms from 0 up; `Infinity` is one. */
export const notNegative = from(0, Number.POSITIVE_INFINITY, 'a number of milliseconds from 0 up, Infinity included');

export function count(name: string, value: unknown): number {
  return wholeNumber(name, value, 1, MAX_DELAY);
}

export function wholeNumber(name: string, value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const what = least === most ? `${least}` : `a whole number from ${least} to ${most}`;
  const whole = from(least, most, what)(name, value);
  if (!Number.isInteger(whole)) throw new RangeError(expected(name, what, value));
  return whole;
}

/** `NaN` is in no range. */
function from(least: number, most: number, what: string): Check<number> {
  return (name, value) => {
    const given = number(name, value);
    if (!(given >= least && given <= most)) throw new RangeError(expected(name, what, value));
    return given;
  };
}

export function number(name: string, value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(expected(name, 'a number', value));
  return value;
}

export function boolean(name: string, value: unknown): boolean {
  if (typeof value !== 'boolean') throw new TypeError(expected(name, 'a boolean', value));
  return value;
}

export function oneOf<T extends string>(values: readonly T[]): Check<T> {
  return (name, value) => {
    if (typeof value !== 'string') throw new TypeError(expected(name, 'a string', value));
    const known = values.find((one) => one === value);
    if (known === undefined) throw new RangeError(expected(name, `one of ${values.join(', ')}`, value));
    return known;
  };
}

/** By structure: a signal may come from another realm, such as that of a test environment. */
export function abortSignal(name: string, value: unknown): AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  if (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function') {
    throw new TypeError(expected(name, 'an AbortSignal', value));
  }
  return value as AbortSignal;
}

export function callback<T>(name: string, value: unknown): T {
  if (typeof value !== 'function') throw new TypeError(expected(name, 'a function', value));
  return value as T;
}

/** Checks for a registry, by a method that is needed. Quotes nothing of it: a client has a password. */
export function assertRegistry<T>(value: T, method: keyof T): void {
  if (typeof value?.[method] === 'function') return;
  throw new TypeError(`Expected \`registry\` to be a LockRegistry, got ${value === null ? 'null' : typeof value}`);
}

/** An array of strings, as a copy. A hole in it is `undefined`, and no string. */
export function strings(name: string, value: unknown, check: Check<string> = string): string[] {
  if (!Array.isArray(value)) throw new TypeError(expected(name, 'an array of strings', value));
  return Array.from(value, (one: unknown, index) => check(`${name}[${index}]`, one));
}

/** A text that is quoted may be a URL with a password, at a wrong place. */
export function withoutPassword(text: string): string {
  return text.replace(/:\/\/[^\s'"`]*@/g, '://…@');
}

/** The one form of messages about arguments: what was expected, and the value that came instead. */
export function expected(name: string, what: string, value: unknown): string {
  const shown = withoutPassword(inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY }));
  return inOneLine(`Expected \`${name}\` to be ${what}, got ${shown} (${value === null ? 'null' : typeof value})`);
}

/** What ends a line, changes the direction of a text, or is not seen. A key may have it. */
const NOT_SHOWN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * A message for a log, in one line, in which each character is seen: others are written as `inspect` does, or by their
 * number. Every message that quotes a key, or a text of somebody else's, goes through it.
 */
export function inOneLine(message: string): string {
  return message.replace(NOT_SHOWN, (one) => {
    const shown = inspect(one).slice(1, -1);
    return shown === one ? `\\u{${one.codePointAt(0)?.toString(16).toUpperCase()}}` : shown;
  });
}

/** A secret that a header can have as it is: at least 16 characters of ASCII, without a space at its ends. */
export const SECRET = /^[!-~][ -~]{14,}[!-~]$/;
