import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry, Segment, SegmentedLock } from '../../lib';
import { DISTINCT_TYPES } from '../support/lock-types';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const SEGMENTS = 5;

describeReal.each(DISTINCT_TYPES)('A segmented lock of type %s', (lockType) => {
  let client: TestClient;
  let clients: readonly [TestClient, TestClient];
  /** As in two processes. */
  let registries: readonly RedisLockRegistry[];
  let stocks: readonly SegmentedLock[];
  let stock: SegmentedLock;
  let registryKey: string;

  beforeAll(async () => {
    client = await createRealClient();
    clients = [await createRealClient(), await createRealClient()];
  });

  beforeEach(() => {
    registryKey = uniqueKey('segmented');
    registries = clients.map((each) => createRegistry(each, { registryKey, lockType, fencing: true }).registry);
    stocks = registries.map((registry) => registry.segmented('stock', { segments: SEGMENTS }));
    [stock] = stocks as [SegmentedLock];
  });

  const piecesOf = (index: number) => `${registryKey}-pieces-${index}`;
  const fill = (pieces: readonly number[]) =>
    Promise.all(
      pieces.map((many, index) => client.set(piecesOf(index), many, { expiration: { type: 'PX', value: 60_000 } })),
    );
  const left = async () =>
    (await client.mGet(Array.from({ length: SEGMENTS }, (_, index) => piecesOf(index)))).map(Number);
  const nothingIsLeft = () =>
    until(async () => (await client.exists(stock.names.map((name) => `${registryKey}:${name}`))) === 0);

  /** Reads, yields so that a broken lock would let others in, and writes. */
  const sell =
    (many: number) =>
    async ({ index, exhausted }: Segment) => {
      const before = Number(await client.get(piecesOf(index)));
      if (before < many) return exhausted;
      await new Promise((resolve) => setTimeout(resolve, 1));
      await client.set(piecesOf(index), before - many, { expiration: 'KEEPTTL' });
      return before - many;
    };

  it('A segmented lock leaves no key behind when a wait for several segments is aborted', async () => {
    const leases = await Promise.all(
      stock.names.map((name) => (registries[1] as RedisLockRegistry).obtain(name).lock()),
    );
    const controller = new AbortController();
    const waits = Promise.allSettled(
      Array.from({ length: 6 }, () => stock.run(sell(1), { signal: controller.signal })),
    );
    // Long enough for an answer on a busy machine: without one it is no timeout.
    const waitTime = 1_000;
    const timeOut = stock.run(sell(1), { waitTime });
    await expect(timeOut).rejects.toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'stock', waitTime });
    controller.abort(new Error('enough'));
    // They are released while the waiters leave.
    await Promise.all(leases.map((lease) => lease.unlock()));
    expect(await waits).toEqual(Array(6).fill({ status: 'rejected', reason: new Error('enough') }));
    await nothingIsLeft();
  });

  it('A segmented lock sells what a process left that vanished in its sections, once their leases end, and refuses only then', async () => {
    await fill([3, 0, 2, 0, 4]);
    const dying = await createRealClient();
    const { registry } = createRegistry(dying, { registryKey, lockType, expireAfter: 800, fairLockWaitTimeout: 100 });
    const gone = registry.segmented('stock', { segments: SEGMENTS });
    const entered: string[] = [];
    const inside = async ({ name }: Segment) => {
      entered.push(name);
      await new Promise(() => undefined);
    };
    for (let i = 0; i < 2; i++) void gone.run(inside).catch(() => undefined);
    await until(() => entered.length === 2);
    dying.destroy();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (stocks[i % 2] as SegmentedLock).run(sell(1))),
    );
    expect(answers.filter(({ served }) => served)).toHaveLength(9);
    expect(await left()).toEqual([0, 0, 0, 0, 0]);
    await registry.close({ timeout: 0 });
    await nothingIsLeft();
  });
});
