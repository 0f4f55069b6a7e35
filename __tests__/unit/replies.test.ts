import { expect, it } from '@jest/globals';
import {
  arrayIn,
  foundIn,
  isFound,
  isGrant,
  numberIn,
  ownerIn,
  ownershipIn,
  remainingIn,
  renew,
  textIn,
  unknownOwnership,
} from '../../lib/protocols/format/replies';
import { leftToKeep } from '../../lib/protocols/format/script-parts';
import { SPRING_SCRIPTS, SpringFormat } from '../../lib/protocols/spring';
import { CommandTimeoutError } from '../../lib/redis/failure';
import { LockNames } from '../../lib/redis/names';
import type { Redis } from '../../lib/redis/redis';
import { FakeClock } from '../support/fake-clock';
import { FakeRedis, fakeParts } from '../support/fake-redis';

const { RENEW } = SPRING_SCRIPTS;
const time = FakeClock.install();
const REPLY = ['the whole reply'];

/** In place of a value: the reply is refused, with what came and from which script. */
const REFUSED = 'refused';

const read = (reader: () => unknown): unknown => {
  try {
    return reader();
  } catch (error) {
    expect((error as Error).message).toMatch(/^Redis replied .* to the script "renew \(spring\)", which cannot return/);
    return REFUSED;
  }
};

const held = (until: number) => ({ state: 'held', until });

type Row = readonly [
  what: string,
  reader: (value: unknown) => unknown,
  cases: readonly (readonly [unknown, unknown])[],
];
const rows: readonly Row[] = [
  [
    'a number',
    (value) => numberIn(RENEW, REPLY, value),
    [
      [0, 0],
      ['7', 7],
      ['', REFUSED],
      ['x', REFUSED],
      [null, REFUSED],
      [[5], REFUSED],
      [Number.NaN, REFUSED],
      ['Infinity', REFUSED],
    ],
  ],
  [
    'an array',
    (value) => arrayIn(RENEW, value, 1, 2),
    [
      [[1], [1]],
      [
        [1, 2],
        [1, 2],
      ],
      [[], REFUSED],
      [[1, 2, 3], REFUSED],
      ['x', REFUSED],
      [{ length: 1 }, REFUSED],
    ],
  ],
  [
    'an array of one length',
    (value) => arrayIn(RENEW, value, 1),
    [
      [[1], [1]],
      [[1, 2], REFUSED],
    ],
  ],
  [
    'a text',
    (value) => textIn(RENEW, REPLY, value),
    [
      ['', ''],
      ['a', 'a'],
      [7, '7'],
      [null, REFUSED],
      [[], REFUSED],
    ],
  ],
  [
    'an owner',
    ownerIn,
    [
      ['a', 'a'],
      ['', undefined],
      [7, undefined],
      [undefined, undefined],
    ],
  ],
  [
    'what a key has left',
    (value) => remainingIn(RENEW, REPLY, value),
    [
      [5, 5],
      [-1, Number.POSITIVE_INFINITY],
      [-2, 0],
      ['x', REFUSED],
    ],
  ],
  [
    'what a release found',
    (value) => foundIn(RENEW, REPLY, value),
    [
      [2, 'released'],
      [1, 'released'],
      [0, 'expired'],
      [-1, 'stolen'],
      [-2, REFUSED],
      [3, REFUSED],
      [0.5, REFUSED],
    ],
  ],
  [
    'what a renewal found',
    (value) => ownershipIn(RENEW, value, 1_000, 2_000),
    [
      [1, held(2_997)],
      [[9_000], held(1_000 + 9_000 - 10)],
      [0, { state: 'expired' }],
      [-1, { state: 'stolen' }],
      [[], REFUSED],
      [[1, 2], REFUSED],
    ],
  ],
  [
    'whether it is a grant',
    isGrant,
    [
      [1, true],
      ['7', true],
      [[5, 'a'], false],
    ],
  ],
  [
    'whether the key was found',
    isFound,
    [
      [1, true],
      [0, false],
      [-1, false],
      [[5], true],
      [[-5], true],
      [[1, 3], true],
      [[0, 3], false],
      [[-1, 0], false],
    ],
  ],
  [
    'tokens',
    (value) => fencing.tokensIn(RENEW, value),
    [
      ['7', { fencingToken: 7, moreTokens: 0 }],
      [1, { fencingToken: 1, moreTokens: 0 }],
      ['7 3', { fencingToken: 7, moreTokens: 2 }],
      [0, REFUSED],
      ['0 2', REFUSED],
      ['7 0', REFUSED],
      ['', REFUSED],
      [null, REFUSED],
    ],
  ],
  [
    'a grant without tokens',
    (value) => plain.tokensIn(RENEW, value),
    [
      [1, { fencingToken: undefined }],
      ['7 3', { fencingToken: undefined }],
      [0, REFUSED],
      ['x', REFUSED],
    ],
  ],
  [
    'what gave a lock back',
    (value) => plain.givenBackIn(RENEW, value),
    [
      [1, { found: 'released', listeners: 0 }],
      [[0, 3], { found: 'expired', listeners: 3 }],
      [[1], { found: 'released', listeners: 0 }],
      [[1, 2, 3], REFUSED],
      [[1, null], REFUSED],
    ],
  ],
  [
    'a message',
    (value) => plain.meaningOf(value as string, new LockNames('r', 'k')),
    [
      ['r:k', 'release'],
      ['left to pollers', 'left to pollers'],
      ['r:k2', undefined],
    ],
  ],
];

const { parts } = fakeParts();
const plain = new SpringFormat(parts.redis, parts.settings);
const fencing = new SpringFormat(parts.redis, { ...parts.settings, fencing: true });

it.each(rows)('A reply is read, or refused: %s', (_, reader, cases) => {
  expect(cases.map(([value]) => [value, read(() => reader(value))])).toEqual(cases);
});

it('The age of a grant may be found in another way', () => {
  expect(leftToKeep('1', '2', '3', 'other')).toContain('local age = other or remaining');
  expect(leftToKeep('1', '2', '3')).toContain('local age = remaining');
});

it('A lock without a fencing counter needs no name for it', () => {
  plain.assertNames(new LockNames('r', 'a{b'));
  expect(() => fencing.assertNames(new LockNames('r', 'a{b'))).toThrow(RangeError);
});

it('A renewal says whose the lock is, and where it is not answered, what a late answer says', async () => {
  const redis = new FakeRedis();
  const settled: unknown[] = [];
  const failing = (error: unknown) => {
    renew(redis as unknown as Redis, RENEW, 'k', ['me', '2000'], 2_000, 300, (ownership) => settled.push(ownership));
    expect(redis.last).toMatchObject({ keys: ['k'], args: ['me', '2000'], timeout: 300 });
    redis.last.fail(error);
    return settled.pop() as { late?: Promise<unknown> };
  };
  const lost = new Error('lost');
  expect(failing(lost)).toEqual({ state: 'unknown', cause: lost });
  const lates = [Promise.resolve(1), Promise.resolve('x'), Promise.reject(lost)].map((late) => {
    const cause = new CommandTimeoutError(300, late);
    const said = failing(cause);
    expect(said).toMatchObject({ state: 'unknown', cause });
    return said.late;
  });
  time.now += 500;
  const nonsense = { state: 'unknown', cause: { name: 'UnexpectedReplyError' } };
  expect(await Promise.all(lates)).toMatchObject([held(2_997), nonsense, { state: 'unknown', cause: lost }]);
  expect(unknownOwnership(lost, () => held(0) as never)).toEqual({ state: 'unknown', cause: lost });
});
