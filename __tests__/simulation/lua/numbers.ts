import type { LuaValue } from './value';

const DECIMAL = /^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$/;
const HEXADECIMAL = /^\s*[-+]?0[xX][0-9a-fA-F]+\s*$/;

/** Lua's coercion of a text to a number; `undefined` where it is none. */
export function toNumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return undefined;
  return DECIMAL.test(value) || HEXADECIMAL.test(value) ? Number(value) : undefined;
}

/** Lua's text of a number: C's `%.14g`. */
export function numberToText(number: number): string {
  if (Number.isInteger(number) && Math.abs(number) < 1e14) return Object.is(number, -0) ? '-0' : String(number);
  return general(number, 14);
}

/** C's `%.<precision>g`. */
export function general(number: number, precision: number): string {
  if (Number.isNaN(number)) return 'nan';
  if (!Number.isFinite(number)) return number > 0 ? 'inf' : '-inf';
  if (number === 0) return '0';
  const [mantissa = '', power = '0'] = number.toExponential(Math.max(1, precision) - 1).split('e');
  const exponent = Number(power);
  const withoutZeros = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  if (exponent < -4 || exponent >= precision) {
    const digits = String(Math.abs(exponent)).padStart(2, '0');
    return `${withoutZeros(mantissa)}e${exponent < 0 ? '-' : '+'}${digits}`;
  }
  return withoutZeros(number.toFixed(Math.max(0, precision - 1 - exponent)));
}

/** C's `%.<decimals>f`: a tie goes to the even digit, unlike in `toFixed`. */
export function fixed(number: number, decimals: number): string {
  if (decimals === 0 && Math.abs(number % 1) === 0.5) {
    return String(2 * Math.round(number / 2));
  }
  return number.toFixed(decimals);
}
