import { expect, it } from '@jest/globals';
import { createRealClient, describeReal, uniqueKey } from '../support/redis';
import { type SpiedClient, spyOn } from '../support/spied-client';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms */
const IDLE = 100;

describeReal('What a spin lock sends', () => {
  const open = async (registryKey = uniqueKey('traffic')) => {
    const spy: SpiedClient = spyOn(await createRealClient());
    const { registry } = createRegistry(spy, { registryKey, lockType: 'spin', idleBetweenTries: IDLE });
    return { spy, registry, registryKey };
  };

  it('is an attempt in each interval of each waiting process, with any number of callers (P9)', async () => {
    const holder = await open();
    const lease = await holder.registry.obtain('key').lock();
    const waiters = [await open(holder.registryKey), await open(holder.registryKey)];
    const controller = new AbortController();
    const { signal } = controller;
    const begun = performance.now();
    const outcomes = Promise.allSettled(
      waiters.flatMap(({ registry }) => Array.from({ length: 50 }, () => registry.obtain('key').lock({ signal }))),
    );
    await until(() => waiters.every(({ spy }) => spy.sent >= 6));
    const intervals = (performance.now() - begun) / IDLE;
    for (const { spy } of waiters) {
      // The first attempt, and its script.
      expect(spy.sent).toBeLessThanOrEqual(intervals + 2);
    }
    controller.abort();
    expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
    await lease.unlock();
  });
});
