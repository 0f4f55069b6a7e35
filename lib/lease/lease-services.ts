import type { ScriptRunner } from '../lock-backend';
import type { LockType } from '../protocols/lock-type-traits';
import type { SharedKind } from '../protocols/semaphore-read-write/shared-kinds';
import type { Connection } from '../redis/connection';
import type { WarningListener } from '../warnings';
import type { Orphans } from './orphans';
import type { Watchdog } from './watchdog';

/** What the leases of a registry share. */
export interface LeaseServices {
  readonly settings: {
    readonly commandTimeout: number;
    readonly maxHold: number;
    readonly onWarning: WarningListener;
    readonly registryKey: string;
    readonly lockType: LockType | SharedKind;
  };
  readonly connection: Connection;
  readonly watchdog: Watchdog;
  readonly orphans: Orphans;
  readonly heldScripts: ScriptRunner;
}
