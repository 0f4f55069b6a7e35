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
} from '../../lib/kinds/common/replies';
import { SPRING_SCRIPTS, SpringFormat } from '../../lib/kinds/spring/kind';
import { CommandTimeoutError } from '../../lib/redis/failure';
import { LockNames } from '../../lib/redis/names';
import type { Redis } from '../../lib/redis/redis';
import { FakeClock } from '../support/fake-clock';
import { FakeRedis, fakeParts } from '../support/fake-redis';

const { RENEW } = SPRING_SCRIPTS;
const time = FakeClock.install();
const REPLY = ['the whole reply'];
const NAME = new LockNames('r', 'k');
const LEFT = 'left to pollers';

const held = (until: number) => ({ state: 'held', until });
const [expired, stolen] = [{ state: 'expired' }, { state: 'stolen' }];
const given = (found: string, listeners: number, headStart = 0) => ({ found, listeners, headStart });
const tokens = (fencingToken: number, moreTokens: number) => ({ fencingToken, moreTokens });

/** What is read of some replies, and what is refused, with what came and from which script. */
type Row = readonly [
  what: string,
  reader: (reply: unknown) => unknown,
  replies: readonly unknown[],
  read: readonly unknown[],
  refused: readonly unknown[],
];
const rows: readonly Row[] = [
  ['a number', (one) => numberIn(RENEW, REPLY, one), [0, '7'], [0, 7], ['', 'x', null, [5], Number.NaN, 'Infinity']],
  ['an array', (one) => arrayIn(RENEW, one, 1, 2), [[1], [1, 2]], [[1], [1, 2]], [[], [1, 2, 3], 'x', { length: 1 }]],
  ['an array of one length', (one) => arrayIn(RENEW, one, 1), [[1]], [[1]], [[1, 2]]],
  ['a text', (one) => textIn(RENEW, REPLY, one), ['', 'a', 7], ['', 'a', '7'], [null, []]],
  ['an owner', ownerIn, ['a', '', 7, undefined], ['a', '', undefined, undefined], []],
  ['what a key has left', (one) => remainingIn(RENEW, REPLY, one), [5, -1, -2], [5, Infinity, 0], ['x']],
  [
    'what a release found',
    (one) => foundIn(RENEW, REPLY, one),
    [2, 1, 0, -1],
    ['released', 'released', 'expired', 'stolen'],
    [-2, 3, 0.5],
  ],
  [
    'what a renewal found',
    (one) => ownershipIn(RENEW, one, 1_000, 2_000),
    [1, [9_000], 0, -1],
    [held(2_997), held(1_000 + 9_000 - 10), expired, stolen],
    [[], [1, 2]],
  ],
  ['whether it is a grant', isGrant, [1, '7', [5, 'a']], [true, true, false], []],
  ['whether a key was found', isFound, [1, '7', [5], [-5]], [true, true, true, true], []],
  ['whether no key was found', isFound, [0, -1], [false, false], []],
  [
    'tokens',
    (one) => fencing.tokensIn(RENEW, one),
    ['7', 1, '7 3'],
    [tokens(7, 0), tokens(1, 0), tokens(7, 2)],
    [0, '0 2', '7 0', '', null],
  ],
  ['a grant without tokens', (one) => plain.tokensIn(RENEW, one), [1, '7 3'], [{}, {}], [0, 'x']],
  [
    'what gave a lock back',
    (one) => plain.givenBackIn(RENEW, one),
    [1, [0, 3], [1], [1, 2, 100]],
    [given('released', 0), given('expired', 3), given('released', 0), given('released', 2, 100)],
    [
      [1, 2, 3, 4],
      [1, null],
      [1, 2, null],
    ],
  ],
  ['a message', (one) => plain.meaningOf(one as string, NAME), ['r:k', LEFT, 'r:k2'], ['release', LEFT, undefined], []],
];

const { parts } = fakeParts();
const plain = new SpringFormat(parts.redis, parts.settings);
const fencing = new SpringFormat(parts.redis, { ...parts.settings, fencing: true });

it.each(rows)('A reply is read, or refused: %s', (_, reader, replies, read, refused) => {
  expect(replies.map((reply) => reader(reply))).toEqual(read);
  const error = /^Redis replied .* to the script "renew \(spring\)", which cannot return/;
  for (const reply of refused) expect(() => reader(reply)).toThrow(error);
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
