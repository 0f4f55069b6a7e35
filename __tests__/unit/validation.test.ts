import { expect, it } from '@jest/globals';
import {
  abortSignal,
  assertRegistry,
  boolean,
  checkedOptions,
  expected,
  nearestTo,
  number,
  oneOf,
  string,
} from '../../lib/internal/validation';
import { untyped } from '../support/refusals';

const listener = { addEventListener: () => undefined };
const type = oneOf(['spin', 'fair']);
const registry = (value: unknown) => assertRegistry(untyped<{ obtain: unknown }>(value), 'obtain');

it.each<[message: string, check: () => unknown]>([
  ['Expected `renew` to be a boolean, got 1 (number)', () => boolean('renew', 1)],
  ["Expected `ttl` to be a number, got '1' (string)", () => number('ttl', '1')],
  ['Expected `key` to be a string, got null (null)', () => string('key', null)],
  ['Expected `type` to be a string, got 1 (number)', () => type('type', 1)],
  ["Expected `type` to be one of spin, fair, got 'SPIN' (string)", () => type('type', 'SPIN')],
  ['Expected `signal` to be an AbortSignal, got null (null)', () => abortSignal('signal', null)],
  [
    'Expected `signal` to be an AbortSignal, got { addEventListener: [Function: addEventListener] } (object)',
    () => abortSignal('signal', listener),
  ],
  ['Expected `registry` to be a LockRegistry, got null', () => registry(null)],
  ['Expected `registry` to be a LockRegistry, got undefined', () => registry(undefined)],
  ['Expected `registry` to be a LockRegistry, got object', () => registry({ obtain: 'secret' })],
  // It may have a password.
  [
    "Expected `options` to be an object, got '…' (string)",
    () => checkedOptions({}, untyped<object>('redis://:secret@')),
  ],
])('A check says what was expected, and what came: %s', (message, check) => {
  const said = (() => {
    try {
      return check();
    } catch (error) {
      return (error as Error).message;
    }
  })();
  expect(said).toBe(message);
});

it('A check takes what it is for', () => {
  const signal = { ...listener, aborted: false };
  expect([boolean('renew', false), type('type', 'fair'), abortSignal('signal', signal)]).toEqual([
    false,
    'fair',
    signal,
  ]);
  expect(registry({ obtain: () => undefined })).toBeUndefined();
});

it.each([
  ['redis://user:hunter2@host/1', "'redis://…@host/1'"],
  [{ url: 'rediss://:p@ss@host' }, "{ url: 'rediss://…@host' }"],
  ['https://host/a@b', "'https://…@b'"],
  ['a@b://c', "'a@b://c'"],
])('A check does not quote the password of a URL at a wrong place: %j', (value, shown) => {
  expect(expected('name', 'a name', value)).toContain(`got ${shown} (`);
});

it('A check quotes an object in one line, and nothing inside it', () => {
  const object = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`a long name ${i}`, { password: 'secret' }]));
  const message = expected('client', 'a client', object);
  expect(message).not.toMatch(/\n|secret/);
  expect(message).toContain("'a long name 19': [Object] } (object)");
});

it.each([
  ['wiat', ['wait', 'ttl'], 'wait'],
  ['TTL', ['wait', 'ttl'], 'ttl'],
  ['ab', ['abcd'], 'abcd'],
  ['a', ['abcd'], undefined],
  ['zzzab', ['ab'], undefined],
  ['wait', [], undefined],
])('The name that was meant by %s, of %j, is %s: at most half of it differs', (name, known, meant) => {
  expect(nearestTo(name, known)).toBe(meant);
});
