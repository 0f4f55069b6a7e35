import { expect, it } from '@jest/globals';
import * as api from '../../lib';

/** The exports that applications depend on. A change here changes the version. */
it('The library exports these names, and no other', () => {
  expect(Object.keys(api).sort()).toEqual([
    'CannotAcquireLockError',
    'LeaseEvalError',
    'LockAskedError',
    'LockError',
    'LockInspectionError',
    'LockLostError',
    'LockQueueFullError',
    'LockRegistry',
    'LockReleaseError',
    'LockTimeoutError',
    'NotLockOwnerError',
    'NotReplicatedError',
    'RedisLockRegistry',
    'RegistryClosedError',
    'SegmentedLock',
    'split',
  ]);
});

it.each([
  [
    'BackedLockRegistry',
    Object.getPrototypeOf(api.RedisLockRegistry.prototype),
    'adopt close constructor expireUnusedOlderThan forget list multi obtain once readWrite renewLock semaphore settings size',
  ],
  ['RedisLockRegistry', api.RedisLockRegistry.prototype, 'constructor segmented'],
  [
    'LockRegistry',
    api.LockRegistry.prototype,
    'adopt close constructor forget lead multi once readWrite run segmented semaphore tryRun',
  ],
])('%s has these methods, and no other', (_name, prototype, names) => {
  expect(Object.getOwnPropertyNames(prototype).sort().join(' ')).toBe(names);
});
