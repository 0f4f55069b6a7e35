import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type Lease, LockLostError } from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';

type Task = (lease: Lease) => Promise<never>;

/** Every way to run a task under a lock whose key, or one of whose keys, is `key`. */
const WAYS: Record<string, (registry: InMemoryLockRegistry, task: Task) => Promise<unknown>> = {
  'run of a registry': (registry, task) => registry.run('key', task),
  'tryRun of a lock': (registry, task) => registry.obtain('key').tryRun(task),
  'a nested run': (registry, task) => registry.run('key', () => registry.run('key', task)),
  'run of a semaphore': (registry, task) => registry.semaphore('key', { permits: 2 }).run(task),
  'run of a lock for reading': (registry, task) => registry.readWrite('key').read.run(task),
  'tryRun of a lock for writing': (registry, task) => registry.readWrite('key').write.tryRun(task),
  'run of several keys': (registry, task) => registry.multi(['another', 'key']).run(task),
  'tryRun of several keys': (registry, task) => registry.multi(['another', 'key']).tryRun(task),
  'run of a segment': (registry, task) => segmented(registry).run(({ lease }) => task(lease)),
  'runAcross of segments': (registry, task) =>
    segmented(registry).runAcross(1, {
      available: () => 1,
      commit: ([part]) => task((part as { lease: Lease }).lease),
    }),
  'runAll of segments': (registry, task) =>
    segmented(registry).runAll(([segment]) => task((segment as { lease: Lease }).lease)),
};

function segmented(registry: InMemoryLockRegistry) {
  return registry.segmented('key', { segments: 1 });
}

/** What the run rejects with. The task throws what `failing` makes once its lease is lost, and hands it to the test. */
async function rejectionOf(way: string, failing: (signal: AbortSignal) => Promise<never>) {
  const registry = new InMemoryLockRegistry();
  let thrown: unknown;
  const running = WAYS[way]?.(registry, async (lease) => {
    registry.locks.expire(way.includes('segment') ? 'key:0' : 'key');
    await expect(lease.renew()).rejects.toThrow(LockLostError);
    return failing(lease.signal).catch((error: unknown) => {
      thrown = error;
      throw error;
    });
  });
  const rejection = await (running as Promise<unknown>).catch((error: unknown) => error);
  await registry.close();
  return { rejection, thrown };
}

describe.each(Object.keys(WAYS))('%s', (way) => {
  it.each([
    ['the reason of the signal', async (signal: AbortSignal) => signal.throwIfAborted() as never],
    ['an AbortError', (signal: AbortSignal) => sleep(60_000, undefined, { signal }) as Promise<never>],
  ])('A lock rejects with LockLostError when its lease was lost, caused by %s of the task (P7)', async (_, failing) => {
    const { rejection, thrown } = await rejectionOf(way, failing);
    expect(rejection).toBeInstanceOf(LockLostError);
    expect(rejection).toMatchObject({ reason: 'expired', result: undefined });
    expect(rejection).not.toBe(thrown);
    expect((rejection as Error).cause).toBe(thrown);
  });

  it.each([new Error('out of stock'), undefined, null])(
    'A lock rejects with any other error of the task, such as %p, as it is, though the lease was lost (P7)',
    async (error) => {
      const { rejection } = await rejectionOf(way, () => Promise.reject(error));
      expect(rejection).toBe(error);
    },
  );

  it('A lock rejects with an AbortError of the task as it is while the lease is held (P7)', async () => {
    const registry = new InMemoryLockRegistry();
    const error = new DOMException('The user has left', 'AbortError');
    await expect(WAYS[way]?.(registry, () => Promise.reject(error))).rejects.toBe(error);
    await registry.close();
  });
});
