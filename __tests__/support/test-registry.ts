import { randomUUID } from 'node:crypto';
import { afterAll, expect } from '@jest/globals';
import {
  type Lease,
  type LockLostError,
  type LockWarning,
  type RedisClient,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
} from '../../lib';

/** A registry with its warnings, closed at the end of the file's tests. */
export interface TestRegistry {
  readonly registry: RedisLockRegistry;
  readonly registryKey: string;
  readonly warnings: readonly LockWarning[];
  /** The name of the lock of `key` in Redis. */
  nameOf(key: string): string;
}

const registries = new Set<RedisLockRegistry>();

afterAll(async () => {
  await Promise.all([...registries].map((registry) => registry.close({ timeout: 0 })));
  registries.clear();
});

export function createRegistry(
  client: RedisClient,
  options: Omit<RedisLockRegistryOptions, 'registryKey' | 'onWarning'> & { registryKey?: string } = {},
): TestRegistry {
  const warnings: LockWarning[] = [];
  const { registryKey = `faults-${randomUUID()}` } = options;
  const registry = new RedisLockRegistry(client, {
    idleBetweenTries: 20,
    ...options,
    registryKey,
    onWarning: (warning) => warnings.push(warning),
  });
  registries.add(registry);
  return { registry, registryKey, warnings, nameOf: (key) => `${registryKey}:${key}` };
}

export interface Loss {
  readonly reason: LockLostError['reason'];
  /** When the signal fired, on the monotonic clock. */
  readonly at: number;
}

/** Resolves when the lease's signal fires. */
export function lossOf(lease: Lease): Promise<Loss> {
  return new Promise((resolve) => {
    const settle = () => resolve({ reason: (lease.signal.reason as LockLostError).reason, at: performance.now() });
    if (lease.signal.aborted) settle();
    else lease.signal.addEventListener('abort', settle);
  });
}

/** ms until the call rejects, with an error like this one. */
export async function rejection(call: Promise<unknown>, error: object): Promise<number> {
  const after = elapsed(call);
  await expect(call).rejects.toMatchObject(error);
  return after;
}

/** ms until the promise settles, in either way. */
export async function elapsed(promise: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await promise.catch(() => undefined);
  return performance.now() - startedAt;
}
