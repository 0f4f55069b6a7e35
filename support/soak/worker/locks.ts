import type { DistributedLock, RedisLockRegistry } from '../../../lib';
import type { Access } from '../../judge/exclusion';
import { PERMITS } from '../../judge/records';
import type { Random } from '../../random';
import type { SoakType } from '../settings';

/** Keys of shared locks where a type has locks of all kinds. */
const KINDS: Readonly<Record<string, SoakType>> = { c: 'semaphore', d: 'read-write' };

function kindOf(type: SoakType, key: string): SoakType {
  return type === 'replicated' ? (KINDS[key] ?? type) : type;
}

/** How a caller takes this lock. */
export function randomAccess(type: SoakType, key: string, random: Random): Access {
  const kind = kindOf(type, key);
  if (kind === 'semaphore') return 'permit';
  if (kind !== 'read-write') return 'exclusive';
  return random.chance(0.7) ? 'read' : 'write';
}

/** The lock that gives this access to a key. */
export function lockFor(registry: RedisLockRegistry, key: string, access: Access): DistributedLock {
  if (access === 'exclusive') return registry.obtain(key);
  if (access === 'permit') return registry.semaphore(key, { permits: PERMITS });
  return registry.readWrite(key)[access];
}

/** The access of a caller that checks whether everybody can make progress. */
export function progressAccess(type: SoakType, key: string): Access {
  const kind = kindOf(type, key);
  return kind === 'semaphore' ? 'permit' : kind === 'read-write' ? 'write' : 'exclusive';
}
