import { expect, it } from '@jest/globals';
import { explainWrongType, KeyPlacement, TAKE, WRITE } from '../../lib/redis/key-placement';
import type { Redis } from '../../lib/redis/redis';
import type { Script } from '../../lib/redis/script';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();

type Answer = (script: Script, keys: string[], args: string[]) => Promise<unknown>;

const ENOUGH = 32;

/** Where keys are, as far as 32 calls at once find out, of which a server answers each command so. */
async function probed(answer: Answer): Promise<KeyPlacement> {
  const placement = new KeyPlacement('orders', 5_000, false, answer);
  await placement.made(ENOUGH);
  return placement;
}

/** The groups of a key with a hash tag and of one without. */
const groups = (placement: KeyPlacement) => ['{tag}a', 'b'].map((key) => placement.groupOf(key));
const APART = [undefined, undefined];
const BY_SLOT = ['tag', 'b'];
const TOGETHER = ['', ''];

const has: Answer = async (script, keys) => (script === WRITE ? keys.length : 1);

it('Where keys are is not known at first, but of a cluster', () => {
  expect(groups(new KeyPlacement('orders', 5_000, false, has))).toEqual(APART);
  const cluster = new KeyPlacement('orders', 5_000, true, has);
  expect([groups(cluster), cluster.made(100)]).toEqual([BY_SLOT, undefined]);
});

it('Where keys are is asked with keys that end after three times the commandTimeout', async () => {
  const asked: unknown[] = [];
  const placement = await probed((script, keys, args) => {
    asked.push([script, keys.length, args]);
    return has(script, keys, args);
  });
  expect(asked).toEqual([[WRITE, 20, ['15000']], ...Array(20).fill([TAKE, 1, []])]);
  expect(groups(placement)).toEqual(TOGETHER);
});

it.each<[string, Answer, unknown[], isKnown: boolean]>([
  ['a key that is not there', async (script, keys) => (script === WRITE ? keys.length : 0), APART, true],
  ['fewer keys than were written', async (script, keys) => (script === WRITE ? keys.length - 1 : 1), APART, false],
  ['nonsense', async (script, keys) => (script === WRITE ? keys.length : 2), APART, false],
  ['CROSSSLOT', () => Promise.reject(new Error("CROSSSLOT Keys don't hash to the same slot")), BY_SLOT, true],
  ['another error', () => Promise.reject(new Error('NOPERM no')), APART, false],
])('Where keys are is not one server after %s, and is asked again unless that says it', async (...row) => {
  const [, answer, expected, isKnown] = row;
  const placement = await probed(answer);
  expect(groups(placement)).toEqual(expected);
  await time.advance(10_000);
  const again = placement.made(ENOUGH);
  expect(again === undefined).toBe(isKnown);
  await again;
});

it('Where keys are stays what the server says in the time of a probe, and a probe that fails is repeated after 10 s', async () => {
  let answers: Answer = async () => 'nonsense';
  const placement = await probed((...asked) => answers(...asked));
  answers = async (...asked) => {
    placement.crossSlot();
    return has(...asked);
  };
  expect(placement.made(ENOUGH)).toBeUndefined();
  await time.advance(9_999);
  expect(placement.made(ENOUGH)).toBeUndefined();
  await time.advance(1);
  await placement.made(1);
  expect(groups(placement)).toEqual(BY_SLOT);
});

it.each([
  ['none', 'WRONGTYPE Operation'],
  ['list', 'WRONGTYPE It is a key of type list in Redis, and it is used as a lock here'],
  [
    'hash',
    'WRONGTYPE It is a lock of type redisson or redisson-fair, or another hash, in Redis, and it is used as a lock here',
  ],
  [undefined, 'WRONGTYPE Operation'],
])('A key of the wrong type, here %j, is explained: %j', async (type, message) => {
  const error = new Error('WRONGTYPE Operation');
  const run = async (_: unknown, keys: string[], args: string[]) => {
    expect([keys, args]).toEqual([['orders:42'], []]);
    return type ?? Promise.reject(new Error('NOPERM'));
  };
  const explained = await explainWrongType(error, { run } as unknown as Redis, 'orders:42', 'a lock', 100);
  expect(explained).toMatchObject({ message });
  expect(explained === error || (explained as Error).cause === error).toBe(true);
});
