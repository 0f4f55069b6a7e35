import { getEventListeners } from 'node:events';
import { expect, it } from '@jest/globals';
import { mockRedis, refused } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const registryOn = (client: ReturnType<typeof mockRedis>) => createRegistry(client, { idleBetweenTries: 5 }).registry;

it('A registry leaves no listener on a signal after the lock was acquired or refused', async () => {
  const redis = mockRedis();
  const lock = registryOn(redis).obtain('42');
  const { signal } = new AbortController();
  const lease = await lock.lock({ signal });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  await lease.unlock();
  redis.evalSha.mockResolvedValue(refused(60_000));
  expect(await lock.tryLock({ signal, waitTime: 10 })).toBeNull();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('A registry leaves no listener on the signal of a caller that a closed registry refuses', async () => {
  const registry = registryOn(mockRedis());
  const lock = registry.obtain('42');
  await registry.close();
  const { signal } = new AbortController();
  await expect(lock.lock({ signal })).rejects.toMatchObject({ name: 'RegistryClosedError' });
  await expect(lock.run(() => undefined, { signal })).rejects.toMatchObject({ name: 'RegistryClosedError' });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('A lease does not end when the signal of its acquisition aborts', async () => {
  const controller = new AbortController();
  const lease = await registryOn(mockRedis()).obtain('42').lock({ signal: controller.signal });
  controller.abort();
  lease.assertHeld();
  expect(lease.signal.aborted).toBe(false);
  await lease.unlock();
});

it('A registry adds one listener to a signal that a thousand callers share, and rejects all of them at once (P8)', async () => {
  const redis = mockRedis();
  redis.evalSha.mockResolvedValue(refused(60_000));
  const registry = registryOn(redis);
  const controller = new AbortController();
  const { signal } = controller;
  const reason = new Error('shutting down');
  const outcomes = Promise.allSettled(
    Array.from({ length: 1_000 }, (_, i) => registry.obtain(`order ${i % 10}`).lock({ signal })),
  );
  await until(() => redis.sent >= 10);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  controller.abort(reason);
  for (const outcome of await outcomes) expect(outcome).toEqual({ status: 'rejected', reason });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});
