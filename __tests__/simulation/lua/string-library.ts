import { number, text } from './arguments';
import { fixed, general } from './numbers';
import { isTrue } from './operators';
import { type Capture, findPattern, type Match } from './pattern';
import { LuaError, type LuaFunction, LuaTable, type LuaValue } from './value';

/** Lua counts from 1, and from the end with negative numbers. */
function position(value: LuaValue, length: number, byDefault: number): number {
  const at = value === undefined ? byDefault : number(value, 'sub');
  return at < 0 ? length + at + 1 : at;
}

function slice(value: LuaValue, from: LuaValue, to: LuaValue): string {
  const whole = text(value);
  const start = Math.max(1, position(from, whole.length, 1));
  return whole.slice(start - 1, Math.max(start - 1, Math.min(whole.length, position(to, whole.length, -1))));
}

const DIRECTIVE = /%([-+ #0]*)(\d*)(?:\.(\d+))?([a-zA-Z%])/g;

function format(template: string, values: readonly LuaValue[]): string {
  let used = 0;
  return template.replace(
    DIRECTIVE,
    (_all, flags: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === '%') return '%';
      const formatted = formatOne(kind, precision, values[used++]);
      if (flags.includes('-')) return formatted.padEnd(Number(width));
      return formatted.padStart(Number(width), flags.includes('0') ? '0' : ' ');
    },
  );
}

function formatOne(kind: string, precision: string | undefined, value: LuaValue): string {
  if (kind === 'd' || kind === 'i') return fixed(Math.trunc(number(value, 'format')), 0);
  if (kind === 'f') return fixed(number(value, 'format'), Number(precision ?? 6));
  if (kind === 'g') return general(number(value, 'format'), Number(precision ?? 6));
  if (kind === 'x') return Math.trunc(number(value, 'format')).toString(16);
  if (kind === 's') return precision === undefined ? text(value) : text(value).slice(0, Number(precision));
  throw new LuaError(`invalid option '%${kind}' to 'format'`);
}

function substitute(match: Match, whole: string, by: LuaValue): string {
  const first = match.captures[0];
  let replacement: LuaValue;
  if (typeof by === 'function') replacement = by(...match.captures)[0];
  else if (by instanceof LuaTable) replacement = by.get(first);
  else return text(by).replace(/%(.)/g, (_all, one: string) => substituteMark(one, whole, match.captures));
  return isTrue(replacement) ? text(replacement) : whole;
}

function substituteMark(mark: string, whole: string, captures: readonly Capture[]): string {
  if (mark === '0') return whole;
  return /[1-9]/.test(mark) ? String(captures[Number(mark) - 1]) : mark;
}

/** The string library of Lua 5.1, as far as lock scripts use it. */
export const stringLibrary: Record<string, LuaFunction> = {
  len: (value) => [text(value).length],
  lower: (value) => [text(value).toLowerCase()],
  upper: (value) => [text(value).toUpperCase()],
  rep: (value, times) => [text(value).repeat(Math.max(0, number(times, 'rep')))],
  reverse: (value) => [[...text(value)].reverse().join('')],
  sub: (value, from, to) => [slice(value, from, to)],
  byte: (value, at) => [slice(value, at ?? 1, at ?? 1).charCodeAt(0)],
  char: (...codes) => [String.fromCharCode(...codes.map((code) => number(code, 'char')))],
  format: (template, ...values) => [format(text(template), values)],
  find: (value, pattern, from, isPlain) => {
    const whole = text(value);
    const start = Math.max(1, position(from, whole.length, 1)) - 1;
    if (isTrue(isPlain)) {
      const at = whole.indexOf(text(pattern), start);
      return at < 0 ? [undefined] : [at + 1, at + text(pattern).length];
    }
    const match = findPattern(whole, text(pattern), start);
    if (match === undefined) return [undefined];
    return [match.start + 1, match.end, ...(text(pattern).includes('(') ? match.captures : [])];
  },
  match: (value, pattern, from) => {
    const whole = text(value);
    const start = Math.max(1, position(from, whole.length, 1)) - 1;
    return findPattern(whole, text(pattern), start)?.captures ?? [undefined];
  },
  gmatch: (value, pattern) => {
    const whole = text(value);
    let at = 0;
    return [
      (): readonly LuaValue[] => {
        const match = findPattern(whole, text(pattern), at);
        if (match === undefined) return [];
        at = match.end === match.start ? match.end + 1 : match.end;
        return match.captures;
      },
    ];
  },
  gsub: (value, pattern, by, limit) => {
    const whole = text(value);
    const most = limit === undefined ? Number.POSITIVE_INFINITY : number(limit, 'gsub');
    let [result, at, count] = ['', 0, 0];
    while (count < most && at <= whole.length) {
      const match = findPattern(whole, text(pattern), at);
      if (match === undefined) break;
      const found = whole.slice(match.start, match.end);
      result += whole.slice(at, match.start) + substitute(match, found, by);
      // After an empty match the next character is taken over as it is.
      if (match.end === match.start) result += whole.slice(match.end, match.end + 1);
      at = match.end === match.start ? match.end + 1 : match.end;
      count++;
      if (text(pattern).startsWith('^')) break;
    }
    return [result + whole.slice(at), count];
  },
};
