import { type DistributedLock, type RedisLock, RedisLockRegistry } from '../../../lib';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { LockFixture } from '../../contract/lock-fixture';
import type { ClientKind } from '../../support/client-kinds';
import { describeReal } from '../../support/redis';

type Obtain = (registry: BackedLockRegistry, key: string) => DistributedLock;

/** Shared locks that behave as a lock does. */
const LOCKS = {
  'A semaphore with one permit': (registry, key) => registry.semaphore(key, { permits: 1 }),
  'The lock for writing': (registry, key) => registry.readWrite(key).write,
} satisfies Record<string, Obtain>;

/** The same kind of client; `obtain` of its registries gives the shared lock. */
function obtaining(obtain: Obtain, kind: ClientKind): ClientKind {
  return {
    ...kind,
    registry(client, options) {
      const registry = kind.registry?.(client, options) ?? new RedisLockRegistry(client, options);
      return Object.assign(registry, { obtain: (key: string) => obtain(registry, key) as RedisLock });
    },
  };
}

/** Parts of the contract of locks, for a shared lock that has one holder, through one kind of client. */
export function sharedContract(
  name: keyof typeof LOCKS,
  kind: ClientKind,
  parts: readonly ((fixture: LockFixture) => void)[],
): void {
  describeReal(`${name} through ${kind.name}`, () => {
    const fixture = new LockFixture('spin', obtaining(LOCKS[name], kind)).installed();
    for (const part of parts) part(fixture);
  });
}
