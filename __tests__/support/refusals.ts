import { expect } from '@jest/globals';

/** Without types, as plain JavaScript calls it. */
export const untyped = <T>(value: unknown): T => value as T;

/** A value, the error that it causes, and what its message contains. */
export type Bad = readonly [value: unknown, kind: ErrorConstructor, quoted: string];

export const badStrings: readonly Bad[] = [
  ['', TypeError, "''"],
  [undefined, TypeError, 'undefined'],
  [null, TypeError, 'null'],
  [42, TypeError, '42'],
  [{}, TypeError, '{}'],
  [Symbol('key'), TypeError, 'Symbol(key)'],
  // Lone surrogates: in UTF-8 all of them become the same character, and different keys the same lock.
  ...['\ud800', 'order:\udc00', '\udc00\ud800', 'a\ud83d'].map((key) => [key, TypeError, 'well-formed'] as const),
];
export const notNumbers: readonly Bad[] = [
  ['100', TypeError, "'100'"],
  [null, TypeError, 'null'],
  [100n, TypeError, '100n'],
  [{}, TypeError, '{}'],
];
export const negative: readonly Bad[] = [
  [-1, RangeError, '-1'],
  [Number.NaN, RangeError, 'NaN'],
];
export const badDurations: readonly Bad[] = [
  ...notNumbers,
  ...negative,
  [0, RangeError, '0'],
  [Number.POSITIVE_INFINITY, RangeError, 'Infinity'],
  [2 ** 31, RangeError, '2147483648'],
];
/** With the margin for drift, nothing is left of one of 1 ms. */
export const badTtls: readonly Bad[] = [
  ...badDurations,
  ...[0.5, 1, 4.9].map((ttl) => [ttl, RangeError, 'from 5'] as const),
];

export const named = (name: string, bad: readonly Bad[]) =>
  bad.map(([value, kind, quoted]) => [name, value, kind, quoted] as const);

/** The call throws or rejects with an error of this kind, whose message contains these parts. */
export async function expectRefusal(call: () => unknown, kind: ErrorConstructor, ...parts: string[]): Promise<void> {
  const error = await (async () => call())().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(kind);
  for (const part of parts) expect(String(error)).toContain(part);
}
