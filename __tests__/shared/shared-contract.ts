import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { type RedisLock, RedisLockRegistry } from '../../lib';
import { LockFixture } from '../contract/lock-fixture';
import type { ClientKind } from '../support/client-kinds';
import { describeReal } from '../support/redis';

/** `obtain` gives a semaphore with one permit: it behaves as a lock does. */
class OnePermitRegistry extends RedisLockRegistry {
  override obtain(key: string): RedisLock {
    return this.semaphore(key, { permits: 1 }) as RedisLock;
  }
}

/** `obtain` gives the lock for writing: it behaves as a lock does. */
class WriteRegistry extends RedisLockRegistry {
  override obtain(key: string): RedisLock {
    return this.readWrite(key).write as RedisLock;
  }
}

const REGISTRIES = {
  'A semaphore with one permit': OnePermitRegistry,
  'The lock for writing': WriteRegistry,
} as const;

/** Parts of the contract of locks, for a shared lock that has one holder, through one kind of client. */
export function sharedContract(
  name: keyof typeof REGISTRIES,
  kind: ClientKind,
  parts: readonly ((fixture: LockFixture) => void)[],
): void {
  describeReal(`${name} through ${kind.name}`, () => {
    const fixture = new LockFixture('spin', kind, REGISTRIES[name]);
    beforeAll(() => fixture.open());
    beforeEach(() => fixture.beginTest());
    afterEach(() => fixture.endTest());
    afterAll(() => fixture.close());
    for (const part of parts) part(fixture);
  });
}
