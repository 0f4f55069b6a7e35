import { expect, it } from '@jest/globals';
import { assertTravels, type Passport, passportIn, passportText } from '../../lib/core/passport';
import { MAX_DELAY, MIN_TTL } from '../../lib/internal/clock';

const PASSPORT: Passport = {
  format: 'spring',
  owner: 'detached@web-7:4121:h0pCmsO5S7mSQpHDOZJ1Sw:1700000000123456',
  ttl: 60_000,
  renew: true,
  minHold: 0,
  lock: 'test:key',
};

const read = (text: unknown) => passportIn(text, 'spring', 'test:');

const KEYS = ['a b', 'ü%20?&#/+', 'line\nbreak', '{tag}:π', '100%'];

it.each<Partial<Passport>>([
  ...[{}, { renew: false }, { ttl: MIN_TTL }, { ttl: MAX_DELAY }, { minHold: 5 }],
  ...KEYS.map((key) => ({ lock: `test:${key}` })),
])('A passport is read as it was written, in ASCII without line breaks: %j', (change) => {
  const passport = { ...PASSPORT, ...change };
  const text = passportText(passport);
  expect(text).toMatch(/^[!-~ ]+$/);
  expect(read(text)).toEqual(passport);
});

it.each<[unknown, string]>([
  [7, 'a text that detach() returned, got 7 (number)'],
  ['a secret', 'a text that detach() returned, got another of 8 characters'],
  [passportText({ ...PASSPORT, format: 'zset' as never }), 'a text that detach() returned'],
  [passportText({ ...PASSPORT, owner: PASSPORT.owner.replace('detached@', '') }), 'a text that detach() returned'],
  [passportText({ ...PASSPORT, owner: 'detached@nobody' }), 'a text that detach() returned'],
  [
    passportText({ ...PASSPORT, format: 'redisson' }),
    "of a lock of type spin, pub-sub or fair, got that of a lock of type redisson or redisson-fair, 'test:key'",
  ],
  ...['other:key', 'test:'].map((lock): [string, string] => [
    passportText({ ...PASSPORT, lock }),
    `of a lock whose name in Redis begins with 'test:', got that of '${lock}'`,
  ]),
  [passportText({ ...PASSPORT, ttl: MIN_TTL - 1 }), 'a text that detach() returned'],
  [passportText({ ...PASSPORT, ttl: MAX_DELAY + 1 }), 'a text that detach() returned'],
  [`my lease/2 ${passportText(PASSPORT)}`, 'a text that detach() returned'],
  ['lease/12 anything', 'of version 1, got version 12'],
])('What is no passport of this version, type and registry is refused: %s', (text, why) => {
  expect(() => read(text)).toThrow(`Expected \`passport\` to be ${why}`);
});

it('A lock whose leases do not travel says which of them do', () => {
  expect(() => assertTravels(undefined, 'read')).toThrow(
    'The lease of a lock of type read cannot travel to another process: ' +
      'that of a lock of type spin, pub-sub, fair or redisson can',
  );
});
