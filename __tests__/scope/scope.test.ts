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
import { unlocking } from './parts/unlocking';
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
  unlocking,
] as const;

/** The behaviour of re-entrancy, for one lock type. */
function scopeContract(lockType: LockType): void {
  describeReal(`A scope of a ${lockType} lock`, () => {
    const fixture = new LockFixture(lockType, redis6Client);
    beforeAll(() => fixture.open());
    beforeEach(() => fixture.beginTest());
    afterEach(() => fixture.endTest());
    afterAll(() => fixture.close());
    for (const part of parts) part(fixture);
  });
}

// A scope knows nothing of lock types. These have little in common: what they write, how they wait, and their order.
scopeContract('spin');
scopeContract('redisson-fair');
