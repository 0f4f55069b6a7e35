import type { LockBackend } from './lock-backend';
import { MultiLock, multiKeys } from './multi/multi-lock';
import type { LockServices, RedisLock } from './redis-lock';
import { SharedLocks } from './semaphore-read-write/shared-locks';

/** What a registry has beside the locks of one key. A registry without them does not load them. */
export interface LockKinds {
  multi(keys: readonly string[], obtain: (key: string) => RedisLock): MultiLock;
  /** `undefined`: the backend has none. */
  shared(services: LockServices, backend: LockBackend): SharedLocks | undefined;
}

export const ALL_KINDS: LockKinds = {
  multi: (keys, obtain) => new MultiLock(multiKeys(keys).map(obtain)),
  shared: (services, backend) => backend.shared && new SharedLocks(services, backend, backend.shared),
};
