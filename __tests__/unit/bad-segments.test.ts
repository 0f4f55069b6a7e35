import { beforeEach, expect, it } from '@jest/globals';
import { RedisLockRegistry, SegmentedLock, type SegmentedLockOptions, split } from '../../lib';
import { mockRedis } from '../support/mock-redis';
import { expectRefusal, untyped } from '../support/refusals';

let registry: RedisLockRegistry;
let stock: SegmentedLock;

beforeEach(() => {
  registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
  stock = create('stock', { segments: 2 });
});

const create = (key: unknown, options: unknown) =>
  new SegmentedLock(registry, untyped<string>(key), untyped<SegmentedLockOptions>(options));
const serve = ({ index }: { index: number }) => index;
const across = { available: () => 1, commit: () => 'served' };

it.each([
  ['', { segments: 2 }, TypeError, "Expected `key` to be a non-empty string, got '' (string)"],
  [7, { segments: 2 }, TypeError, '`key`'],
  ['stock', undefined, TypeError, '`options`'],
  ['stock', null, TypeError, '`options`'],
  ['stock', {}, TypeError, 'Expected `segments` to be a number, got undefined'],
  ['stock', { segments: '2' }, TypeError, "'2'"],
  ['stock', { segments: 0 }, RangeError, 'Expected `segments` to be a whole number from 1 to 16384, got 0 (number)'],
  ['stock', { segments: 2.5 }, RangeError, '2.5'],
  ['stock', { segments: 16_385 }, RangeError, '16385'],
  ['stock', { segments: 2, random: 42 }, TypeError, '`random`'],
  ['stock', { segments: 2, seed: 42 }, TypeError, 'Unknown option `seed` (42); known are segments, random'],
])('A segmented lock is not made of %p, %p', (key, options, kind, message) =>
  expectRefusal(() => create(key, options), kind, message),
);

it('A segmented lock treats undefined as an option that is not given', () => {
  expect(create('stock', { segments: 1, random: undefined }).names).toEqual(['stock:0']);
});

it.each([
  [{ waitTime: -1 }, RangeError, '`waitTime`'],
  [{ waitTime: '1' }, TypeError, '`waitTime`'],
  [{ ttl: 0 }, RangeError, '`ttl`'],
  [{ signal: 'stop' }, TypeError, '`signal`'],
])('A segmented lock rejects options such as %p', async (bad, kind, message) => {
  const options = untyped<object>(bad);
  const calls = [stock.run(serve, options), stock.runAcross(1, across, options), stock.runAll(() => 'served', options)];
  for (const call of calls) await expectRefusal(() => call, kind, message);
});

it('A segmented lock rejects a task that is not a function', async () => {
  const acrossWith = (task: unknown) => () => stock.runAcross(1, untyped<typeof across>(task));
  await expectRefusal(() => stock.run(untyped<() => number>(undefined)), TypeError, '`task`');
  await expectRefusal(() => stock.runAll(untyped<() => number>('task')), TypeError, '`task`');
  await expectRefusal(acrossWith(undefined), TypeError, '`task.available`');
  await expectRefusal(acrossWith({ available() {} }), TypeError, '`task.commit`');
});

it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('A segmented lock rejects %p as an amount', (amount) =>
  expectRefusal(() => stock.runAcross(amount, across), RangeError),
);

it.each([-1, 0.5, Number.NaN, '3', undefined])(
  'A segmented lock rejects %p as what is available, and gives back what it holds',
  async (available) => {
    const commit = () => expect(true).toBe(false);
    const call = () => stock.runAcross(1, { available: () => untyped<number>(available), commit });
    await expectRefusal(call, Error, '`available`');
    expect(registry.obtain('stock:0').isAcquiredInThisProcess).toBe(false);
  },
);

it.each([1, -0.1, Number.NaN, '0.5'])('A segmented lock rejects %p as a random number', (drawn) =>
  expectRefusal(
    () => create('stock', { segments: 2, random: () => drawn }).run(serve),
    Error,
    'Expected `random()` to be a number',
  ),
);

it.each([
  [-1, 3, RangeError, '`total`', '-1'],
  [1.5, 3, RangeError, '`total`', '1.5'],
  [Number.NaN, 3, RangeError, '`total`', 'NaN'],
  [2 ** 53, 3, RangeError, '`total`', '9007199254740992'],
  ['7', 3, TypeError, '`total`', "'7'"],
  [7, 0, RangeError, '`segments`', '0'],
  [7, 1.5, RangeError, '`segments`', '1.5'],
  [7, 16_385, RangeError, '`segments`', '16385'],
  [7, undefined, TypeError, '`segments`', 'undefined'],
])('split(%p, %p) is refused', (total, segments, kind, name, quoted) =>
  expectRefusal(() => split(total as number, segments as number), kind, name, quoted),
);
