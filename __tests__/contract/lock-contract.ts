import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { LOCK_TYPES, type LockType } from '../../lib/protocols/lock-types';
import type { ClientKind } from '../support/client-kinds';
import { describeEmbedded, describeReal } from '../support/redis';
import { LockFixture } from './lock-fixture';
import { acquiring } from './parts/acquiring';
import { closing } from './parts/closing';
import { evaluating } from './parts/evaluating';
import { exclusion } from './parts/exclusion';
import { expiring } from './parts/expiring';
import { fencing } from './parts/fencing';
import { holding } from './parts/holding';
import { keepingAlive } from './parts/keeping-alive';
import { releasing } from './parts/releasing';
import { renewing } from './parts/renewing';
import { renewingByKey } from './parts/renewing-by-key';
import { running } from './parts/running';
import { waiting } from './parts/waiting';

const parts = [
  acquiring,
  waiting,
  releasing,
  holding,
  expiring,
  renewing,
  renewingByKey,
  keepingAlive,
  running,
  evaluating,
  fencing,
  closing,
  exclusion,
] as const;

/** The behaviour of one lock type through one kind of client. */
export function lockContract(lockType: LockType, kind: ClientKind): void {
  const describeHere = kind.server === 'real' ? describeReal : describeEmbedded;
  describeHere(`A ${lockType} lock through ${kind.name}`, () => {
    const fixture = new LockFixture(lockType, kind);
    beforeAll(() => fixture.open());
    beforeEach(() => fixture.beginTest());
    afterEach(() => fixture.endTest());
    afterAll(() => fixture.close());
    for (const part of parts) if (part !== evaluating || !kind.hasNoScripts) part(fixture);
  });
}

/** A comma-separated selection of lock types; all by default. */
const selected = process.env.TEST_LOCK_TYPES?.split(',');

/** The contract for these lock types, of those that are selected. */
export function contractFor(kind: ClientKind, types: readonly LockType[] = LOCK_TYPES): void {
  for (const lockType of types) {
    if (selected === undefined || selected.includes(lockType)) lockContract(lockType, kind);
  }
}
