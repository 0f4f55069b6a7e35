import { LOCK_TYPES, type LockType } from '../../lib/kinds';
import type { ClientKind } from '../support/client-kinds';
import { describeEmbedded, describeReal } from '../support/redis';
import { LockFixture } from './lock-fixture';
import { acquiring } from './parts/acquiring';
import { closing } from './parts/closing';
import { evaluating } from './parts/evaluating';
import { exclusion } from './parts/exclusion';
import { expiring } from './parts/expiring';
import { fencing } from './parts/fencing';
import { foreignOwners } from './parts/foreign-owners';
import { holding } from './parts/holding';
import { keepingAlive } from './parts/keeping-alive';
import { releasing } from './parts/releasing';
import { renewing } from './parts/renewing';
import { renewingByKey } from './parts/renewing-by-key';
import { running } from './parts/running';
import { travelling } from './parts/travelling';
import { waiting } from './parts/waiting';

type Part = (fixture: LockFixture) => void;

/** What each lock type does with scripts and messages of its own. */
const TYPE: readonly Part[] = [
  acquiring,
  waiting,
  releasing,
  holding,
  renewing,
  evaluating,
  fencing,
  foreignOwners,
  exclusion,
  travelling,
];

/** What the library does with a lease, whatever its type. */
const LEASE: readonly Part[] = [expiring, renewingByKey, keepingAlive, running, closing];

const ALL: readonly Part[] = [...TYPE, ...LEASE];

/** The behaviour of one lock type through one kind of client. */
export function lockContract(lockType: LockType, kind: ClientKind, parts = ALL): void {
  const describeHere = kind.server === 'real' ? describeReal : describeEmbedded;
  describeHere(`A ${lockType} lock through ${kind.name}`, () => {
    const fixture = new LockFixture(lockType, kind).installed();
    for (const part of parts) {
      if ((part === evaluating || part === foreignOwners) && kind.hasNoScripts) continue;
      if (part === travelling && lockType === 'redisson-fair') continue;
      part(fixture);
    }
  });
}

/** A comma-separated selection of lock types. */
const selected = process.env.TEST_LOCK_TYPES?.split(',') as LockType[] | undefined;

/**
 * The contract through a kind of client: all of it for the types `whole`, and for the types `own` what is of each type.
 * What a row asserts about a client is the same for any type, and what it asserts about a type is so through any client:
 * `npm test` does not try all of them with all. TEST_LOCK_TYPES is in place of both: these types, and all of it.
 */
export function contractFor(
  kind: ClientKind,
  whole: readonly LockType[] = LOCK_TYPES,
  own: readonly LockType[] = [],
): void {
  for (const lockType of selected ?? whole) lockContract(lockType, kind);
  if (selected === undefined) for (const lockType of own) lockContract(lockType, kind, TYPE);
}
