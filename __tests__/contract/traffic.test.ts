import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { type Monitor, startMonitor } from '../support/monitor';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { until } from '../support/until';

describeReal('What a spin lock sends', () => {
  let monitor: Monitor;
  let clients: TestClient[];
  let registryKey: string;

  beforeAll(async () => {
    monitor = await startMonitor();
    clients = await Promise.all([createRealClient(), createRealClient(), createRealClient()]);
  });

  beforeEach(() => {
    registryKey = uniqueKey('traffic');
  });

  afterAll(() => monitor.stop());

  const registryOn = (client: TestClient | undefined) =>
    new RedisLockRegistry(client as TestClient, { registryKey, lockType: 'spin' });

  /** Commands of clients, not of scripts, on the locks of this test. */
  const sent = async () => {
    await monitor.settle();
    return monitor.commands.filter(
      ({ source, args }) => source !== 'lua' && args.some((text) => text.includes(registryKey)),
    );
  };

  const settleAndClear = async () => {
    await monitor.settle();
    monitor.clear();
  };

  it('is about ten attempts a second for each waiting process, with any number of callers (P9)', async () => {
    const [holder, ...waiters] = clients.map(registryOn) as [RedisLockRegistry, ...RedisLockRegistry[]];
    const lease = await holder.obtain('key').lock();
    await settleAndClear();
    const controller = new AbortController();
    const { signal } = controller;
    const outcomes = Promise.allSettled(
      waiters.flatMap((registry) => Array.from({ length: 50 }, () => registry.obtain('key').lock({ signal }))),
    );
    const started = performance.now();
    await until(() => performance.now() - started > 1_000);
    const attempts = await sent();
    controller.abort();
    expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
    expect(attempts.length).toBeGreaterThanOrEqual(2 * 5);
    expect(attempts.length).toBeLessThanOrEqual(2 * 12);
    expect(new Set(attempts.map(({ args }) => args[0])).size).toBe(1);
    await lease.unlock();
    await Promise.all([holder, ...waiters].map((registry) => registry.close()));
  });

  it('is one acquisition, and few confirmations, when many callers of one process take turns', async () => {
    const registry = registryOn(clients[0]);
    await registry.run('key', () => undefined);
    await settleAndClear();
    await Promise.all(Array.from({ length: 50 }, () => registry.run('key', () => undefined)));
    expect((await sent()).length).toBeLessThanOrEqual(25);
    await registry.close();
  });
});
