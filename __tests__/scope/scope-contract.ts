import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { LockType } from '../../lib/protocols/lock-types';
import { LockFixture } from '../contract/lock-fixture';
import { redis6Client } from '../support/client-kinds';
import { describeReal } from '../support/redis';
import { contexts } from './parts/contexts';
import { detached } from './parts/detached';
import { errors } from './parts/errors';
import { expiring } from './parts/expiring';
import { losing } from './parts/losing';
import { neighbours } from './parts/neighbours';
import { nesting } from './parts/nesting';
import { remembering } from './parts/remembering';
import { siblings } from './parts/siblings';
import { ttl } from './parts/ttl';
import { unawaited } from './parts/unawaited';
import { unlockingInside } from './parts/unlocking-inside';
import { unlockingLost } from './parts/unlocking-lost';
import { unlockingOutside } from './parts/unlocking-outside';
import { waiting } from './parts/waiting';

const parts = [
  nesting,
  siblings,
  waiting,
  detached,
  unawaited,
  contexts,
  neighbours,
  losing,
  expiring,
  errors,
  ttl,
  remembering,
  unlockingInside,
  unlockingOutside,
  unlockingLost,
] as const;

/** The behaviour of re-entrancy, for one lock type. */
export function scopeContract(lockType: LockType): void {
  describeReal(`A scope of a ${lockType} lock`, () => {
    const fixture = new LockFixture(lockType, redis6Client);
    beforeAll(() => fixture.open());
    beforeEach(() => fixture.beginTest());
    afterEach(() => fixture.endTest());
    afterAll(() => fixture.close());
    for (const part of parts) part(fixture);
  });
}
