import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type LockType, RedisLockRegistry } from '../../lib';
import { type Monitor, startMonitor } from '../support/monitor';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { until } from '../support/until';

/** What docs/guarantees.md says under "Within a process". */
describeReal('Within a process, as docs/guarantees.md has it', () => {
  let client: TestClient;
  let monitor: Monitor;
  const made: RedisLockRegistry[] = [];

  beforeAll(async () => {
    client = await createRealClient();
    monitor = await startMonitor();
  });

  afterAll(async () => {
    await Promise.all(made.map((registry) => registry.close({ timeout: 0 })));
    monitor.stop();
  });

  function registryOf(options: { lockType: LockType; fencing?: boolean; handOver?: number }): RedisLockRegistry {
    const registry = new RedisLockRegistry(client, { registryKey: uniqueKey('within'), ...options });
    made.push(registry);
    return registry;
  }

  /** Requests for each lease of 100 callers, and the order in which they were served. */
  async function served(registry: RedisLockRegistry): Promise<{ requests: number; order: number[] }> {
    const order: number[] = [];
    await registry.run('key', () => undefined);
    await monitor.settle();
    monitor.clear();
    const callers = Array.from({ length: 100 }, (_, caller) => registry.run('key', () => void order.push(caller)));
    await Promise.all(callers);
    await monitor.settle();
    const requests = monitor.commands.filter(({ name, source }) => source !== 'lua' && name.startsWith('EVAL'));
    return { requests: requests.length / callers.length, order };
  }

  const inOrder = Array.from({ length: 100 }, (_, caller) => caller);

  describe.each(['spin', 'pub-sub', 'fair', 'redisson'] as const)('%s', (lockType) => {
    it.each([false, true])('A lock serves callers in order, with nearly no requests (fencing: %p)', async (fencing) => {
      const { requests, order } = await served(registryOf({ lockType, fencing }));
      expect(order).toEqual(inOrder);
      expect(requests).toBeLessThan(0.5);
    });

    it.each([false, true])(
      'A lock finds a deleted lock more than 50 ms after Redis confirmed it, and says so at unlock (fencing: %p)',
      async (fencing) => {
        const registry = registryOf({ lockType, fencing });
        const lock = registry.obtain('key');
        const lease = await lock.lock();
        const next = lock.lock();
        const startedAt = performance.now();
        await client.del(lock.names.lock);
        await until(() => performance.now() - startedAt > 60);
        await expect(lease.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
        await (await next).unlock();
      },
    );
  });

  it.each([
    ['redisson-fair', { lockType: 'redisson-fair' }],
    ['handOver: 0', { lockType: 'pub-sub', handOver: 0 }],
  ] as const)('Within a process, a lock takes two requests for each lease with %s', async (_name, options) => {
    const { requests, order } = await served(registryOf(options));
    expect(order).toEqual(inOrder);
    expect(requests).toBeGreaterThanOrEqual(1.9);
  });
});
