import type { DistributedLock, RedisLockRegistry } from '../../../lib';
import type { Access } from '../../judge/exclusion';
import { PERMITS } from '../../judge/records';
import type { Random } from '../../random';
import type { SoakType } from '../settings';

/** How a caller takes a lock of this type. */
export function randomAccess(type: SoakType, random: Random): Access {
  if (type === 'semaphore') return 'permit';
  if (type !== 'read-write') return 'exclusive';
  return random.chance(0.7) ? 'read' : 'write';
}

/** The lock that gives this access to a key. */
export function lockFor(registry: RedisLockRegistry, key: string, access: Access): DistributedLock {
  if (access === 'exclusive') return registry.obtain(key);
  if (access === 'permit') return registry.semaphore(key, { permits: PERMITS });
  return registry.readWrite(key)[access];
}

/** The access of a caller that checks whether everybody can make progress. */
export function progressAccess(type: SoakType): Access {
  return type === 'semaphore' ? 'permit' : type === 'read-write' ? 'write' : 'exclusive';
}
