import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { LockTimeoutError, type Part, type Segment, SegmentedLock } from '../../lib';
import { until } from '../support/until';
import { LocalRegistry } from './local-registry';

let registry: LocalRegistry;
let stock: SegmentedLock;
/** The pieces of each segment. */
let pieces: number[];

beforeEach(() => {
  registry = new LocalRegistry();
  pieces = [3, 0, 5, 2];
  stock = new SegmentedLock(registry, 'stock', { segments: 4 });
});

afterEach(() => {
  expect(registry.held).toEqual([]);
});

const available = ({ index }: Segment) => pieces[index] as number;
const take = (parts: readonly Part[]) => {
  for (const { index, amount } of parts) pieces[index] = (pieces[index] as number) - amount;
  return parts.map(({ name, amount }) => `${amount} of ${name}`);
};

it('runAcross takes from as many segments as it needs, in order', async () => {
  expect(await stock.runAcross(7, { available, commit: take })).toEqual({
    served: true,
    value: ['3 of stock:0', '4 of stock:2'],
    segments: [0, 2],
  });
  expect(pieces).toEqual([0, 0, 1, 2]);
  expect(registry.contended).toEqual(['stock:0', 'stock:1', 'stock:2']);
});

it('runAcross holds only the locks of the segments it takes from while it commits', async () => {
  await stock.runAcross(10, {
    available,
    commit(parts) {
      expect(registry.held).toEqual(['stock:0', 'stock:2', 'stock:3']);
      expect(parts.map(({ lease }) => lease.key)).toEqual(registry.held);
    },
  });
});

it('runAcross takes nothing when all segments together have too little', async () => {
  let committed = false;
  const commit = () => {
    committed = true;
  };
  expect(await stock.runAcross(11, { available, commit })).toEqual({ served: false });
  expect(committed).toBe(false);
  expect(registry.contended).toHaveLength(4);
});

it.each(['available', 'commit'] as const)('runAcross releases all locks when %s throws', async (method) => {
  const error = new Error('no');
  const task = { available, commit: take, [method]: () => Promise.reject(error) };
  await expect(stock.runAcross(7, task)).rejects.toBe(error);
  expect(pieces).toEqual([3, 0, 5, 2]);
});

it('runAcross does not deadlock, lose or oversell with many callers', async () => {
  pieces = [50, 50, 50, 50];
  const slowly = async (segment: Segment) => {
    await new Promise(setImmediate);
    return available(segment);
  };
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) => stock.runAcross(3 + (i % 5), { available: slowly, commit: take })),
  );
  const sold = answers.reduce((sum, { served }, i) => sum + (served ? 3 + (i % 5) : 0), 0);
  expect(sold + pieces.reduce((sum, left) => sum + left)).toBe(200);
  expect(Math.min(...pieces)).toBeGreaterThanOrEqual(0);
  expect(sold).toBeGreaterThan(200 - 7);
});

it('runAcross waits no longer than waitTime for all of them, and releases the locks that it held', async () => {
  const lease = await registry.obtain('stock:2').lock();
  const error = await stock.runAcross(7, { available, commit: take }, { waitTime: 60 }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(LockTimeoutError);
  expect(error).toMatchObject({ key: 'stock', waitTime: 60 });
  expect(registry.held).toEqual(['stock:2']);
  await expect(stock.runAcross(7, { available, commit: take }, { waitTime: 0 })).rejects.toThrow(LockTimeoutError);
  expect(registry.held).toEqual(['stock:2']);
  await lease.unlock();
});

it('runAcross is stopped by its signal, and releases the locks that it held', async () => {
  const lease = await registry.obtain('stock:2').lock();
  const controller = new AbortController();
  const call = stock.runAcross(7, { available, commit: take }, { signal: controller.signal });
  await until(() => registry.waiting('stock:2') === 1);
  expect(registry.held.toSorted()).toEqual(['stock:0', 'stock:2']);
  controller.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
  expect(registry.held).toEqual(['stock:2']);
  await lease.unlock();
});

it('runAll holds every segment', async () => {
  const total = await stock.runAll((segments) => {
    expect(registry.held).toEqual([...stock.names]);
    return segments.reduce((sum, { index }) => sum + (pieces[index] as number), 0);
  });
  expect(total).toBe(10);
});

it('runAll names the share of each segment', () => {
  expect(stock.split(5)).toEqual([
    { index: 0, name: 'stock:0', amount: 2 },
    { index: 1, name: 'stock:1', amount: 1 },
    { index: 2, name: 'stock:2', amount: 1 },
    { index: 3, name: 'stock:3', amount: 1 },
  ]);
});
