import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { type RedisLock, RedisLockRegistry } from '../../lib';
import { LockFixture } from '../contract/lock-fixture';
import { acquiring } from '../contract/parts/acquiring';
import { closing } from '../contract/parts/closing';
import { exclusion } from '../contract/parts/exclusion';
import { expiring } from '../contract/parts/expiring';
import { fencing } from '../contract/parts/fencing';
import { keepingAlive } from '../contract/parts/keeping-alive';
import { releasing } from '../contract/parts/releasing';
import { renewing } from '../contract/parts/renewing';
import { running } from '../contract/parts/running';
import { waiting } from '../contract/parts/waiting';
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

const parts = [
  acquiring,
  waiting,
  releasing,
  expiring,
  renewing,
  keepingAlive,
  running,
  closing,
  exclusion,
] as const;

const KINDS = [
  { name: 'A semaphore with one permit', Registry: OnePermitRegistry, parts },
  { name: 'The lock for writing', Registry: WriteRegistry, parts: [...parts, fencing] },
] as const;

/** The parts of the contract of locks that apply to shared locks, through one kind of client. */
export function sharedContract(kind: ClientKind): void {
  describeReal.each(KINDS)(`$name through ${kind.name}`, ({ Registry, parts: applicable }) => {
    const fixture = new LockFixture('spin', kind, Registry);
    beforeAll(() => fixture.open());
    beforeEach(() => fixture.beginTest());
    afterEach(() => fixture.endTest());
    afterAll(() => fixture.close());
    for (const part of applicable) part(fixture);
  });
}
