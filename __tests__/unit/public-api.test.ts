import { expect, it } from '@jest/globals';
import * as api from '../../lib';

/** What a caller may depend on. A change here is a change of the version. */
it('is just this', () => {
  expect(Object.keys(api).sort()).toEqual([
    'CannotAcquireLockError',
    'LockError',
    'LockLostError',
    'LockRegistry',
    'LockReleaseError',
    'LockTimeoutError',
    'NotLockOwnerError',
    'RedisLockRegistry',
    'RegistryClosedError',
    'SegmentedLock',
    'split',
  ]);
});

it('gives a class for a token of dependency injection, which one of another kind may extend', async () => {
  class InMemoryRegistry extends api.LockRegistry {
    obtain(key: string): api.DistributedLock {
      return { key, run: async (task) => task({ key } as api.Lease) } as api.DistributedLock;
    }
  }
  const registry: api.LockRegistry = new InMemoryRegistry();
  expect(await registry.run('42', (lease) => lease.key)).toBe('42');
});

it.each([
  [
    api.RedisLockRegistry.prototype,
    ['close', 'constructor', 'expireUnusedOlderThan', 'obtain', 'renewLock', 'segmented', 'size'],
  ],
  [api.LockRegistry.prototype, ['constructor', 'run']],
])('has these methods: %p', (prototype, names) => {
  expect(Object.getOwnPropertyNames(prototype).sort()).toEqual(names);
});
