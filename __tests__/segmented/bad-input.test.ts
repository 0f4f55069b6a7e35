import { describe, expect, it } from '@jest/globals';
import { type AcrossTask, type LockOptions, type Segment, SegmentedLock, type SegmentedLockOptions } from '../../lib';
import { LocalRegistry } from './local-registry';

/** Without types, as plain JavaScript calls it. */
const untyped = <T>(value: unknown): T => value as T;

const registry = new LocalRegistry();
const create = (key: unknown, options: unknown) =>
  new SegmentedLock(registry, untyped<string>(key), untyped<SegmentedLockOptions>(options));
const stock = new SegmentedLock(registry, 'stock', { segments: 2 });

describe('the constructor', () => {
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
  ])('refuses %p, %p', (key, options, kind, message) => {
    expect(() => create(key, options)).toThrow(kind);
    expect(() => create(key, options)).toThrow(message);
  });

  it('treats undefined as an option that is not given', () => {
    expect(create('stock', { segments: 1, random: undefined }).names).toEqual(['stock:0']);
  });
});

describe('the methods reject', () => {
  const serve = ({ index }: Segment) => index;
  const across: AcrossTask<string> = { available: () => 1, commit: () => 'served' };
  const calls = (options: LockOptions) => [
    stock.run(serve, options),
    stock.runAcross(1, across, options),
    stock.runAll(() => 'served', options),
  ];

  it.each([
    [{ waitTime: -1 }, RangeError, '`waitTime`'],
    [{ waitTime: '1' }, TypeError, '`waitTime`'],
    [{ ttl: 0 }, RangeError, '`ttl`'],
    [{ signal: 'stop' }, TypeError, '`signal`'],
    [{ timeout: 1 }, TypeError, 'Unknown option `timeout`'],
    [null, TypeError, '`options`'],
  ])('options such as %p', async (options, kind, message) => {
    for (const call of calls(untyped<LockOptions>(options))) {
      const error = await call.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject({ message: expect.stringContaining(message) });
    }
  });

  it('a task that is not a function', async () => {
    await expect(stock.run(untyped<() => number>(undefined))).rejects.toThrow('`task`');
    await expect(stock.runAll(untyped<() => number>('task'))).rejects.toThrow('`task`');
    await expect(stock.runAcross(1, untyped<AcrossTask<string>>(undefined))).rejects.toThrow('`task.available`');
    await expect(stock.runAcross(1, untyped<AcrossTask<string>>({ available() {} }))).rejects.toThrow('`task.commit`');
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('%p as an amount', async (amount) => {
    await expect(stock.runAcross(amount, across)).rejects.toThrow(RangeError);
  });

  it.each([-1, 0.5, Number.NaN, '3', undefined])(
    '%p as what is available, and give back what they hold',
    async (available) => {
      const commit = () => expect(true).toBe(false);
      const call = stock.runAcross(1, { available: () => untyped<number>(available), commit });
      await expect(call).rejects.toThrow('`available`');
      expect(registry.held).toEqual([]);
    },
  );

  it.each([1, -0.1, Number.NaN, '0.5'])('%p as a random number', async (drawn) => {
    const lock = new SegmentedLock(registry, 'stock', { segments: 2, random: () => untyped<number>(drawn) });
    await expect(lock.run(serve)).rejects.toThrow('Expected `random()` to be a number');
  });
});
