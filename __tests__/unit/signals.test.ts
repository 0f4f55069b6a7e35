import { tracingChannel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';
import { mockRedis, refused, sharedGranted } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const registryOn = (client: ReturnType<typeof mockRedis>) => createRegistry(client, { idleBetweenTries: 5 }).registry;

it('A registry leaves no listener on the signal of a caller that a closed registry refuses', async () => {
  const registry = registryOn(mockRedis());
  const lock = registry.obtain('42');
  await registry.close();
  const { signal } = new AbortController();
  await expect(lock.lock({ signal })).rejects.toMatchObject({ name: 'RegistryClosedError' });
  await expect(lock.run(() => undefined, { signal })).rejects.toMatchObject({ name: 'RegistryClosedError' });
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it.each([
  ['where its lock is held here', (registry: RedisLockRegistry) => registry.obtain('42')],
  ['where a reader would enter beside another one', (registry: RedisLockRegistry) => registry.readWrite('42').read],
])('A call whose signal a subscriber of its start aborts rejects with the reason, %s', async (_, of) => {
  const redis = mockRedis();
  redis.evalSha.mockImplementation(async (_sha, call) => ((call?.arguments?.length ?? 0) > 6 ? sharedGranted : 1));
  const lock = of(registryOn(redis));
  await lock.lock();
  const controller = new AbortController();
  const subscribers = { start: () => controller.abort('enough') };
  const channel = tracingChannel('redis-lock-registry:acquire');
  channel.subscribe(subscribers as never);
  const { signal } = controller;
  await expect(lock.tryLock({ signal }).finally(() => channel.unsubscribe(subscribers as never))).rejects.toBe(
    'enough',
  );
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

/** As node-abort-controller has it: a listener is called without the signal as `this`. */
function polyfilledAbort() {
  const listeners = new Set<() => void>();
  const signal = {
    aborted: false,
    reason: undefined as unknown,
    addEventListener: (_: 'abort', listener: () => void) => listeners.add(listener),
    removeEventListener: (_: 'abort', listener: () => void) => listeners.delete(listener),
  };
  const abort = (reason: Error): void => {
    Object.assign(signal, { aborted: true, reason });
    for (const listener of [...listeners]) listener.call(undefined);
  };
  return { abort, listeners, signal: signal as unknown as AbortSignal };
}

it('A signal of a polyfill ends a wait, a leader and a call of once as any other does, and keeps no listener', async () => {
  const registry = new InMemoryLockRegistry();
  const { abort, listeners, signal } = polyfilledAbort();
  const reason = new Error('shutting down');
  let told: AbortSignal | undefined;
  const leading = registry.lead(
    '42',
    (leadership) => {
      told = leadership.signal;
      return new Promise<never>((_, reject) => {
        leadership.signal.addEventListener('abort', () => reject(leadership.signal.reason));
      });
    },
    { signal },
  );
  await until(() => told !== undefined);
  const waiting = expect(registry.obtain('42').lock({ signal })).rejects.toBe(reason);
  const once = expect(registry.once('42', () => 1, { keepFor: 1_000, signal })).rejects.toBe(reason);
  await until(() => registry.obtain('42').passing.waiting > 0);
  abort(reason);
  expect(told?.reason).toBe(reason);
  await Promise.all([waiting, once]);
  expect(await leading).toBeUndefined();
  await expect(registry.once('42', () => 1, { keepFor: 1_000, signal })).rejects.toBe(reason);
  expect(listeners.size).toBe(0);
  await registry.close();
});
