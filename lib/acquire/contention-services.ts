import type { LeaseServices } from '../lease/lease-services';
import type { LockProtocol } from '../protocols/protocol';
import type { LockNames } from '../redis/names';
import type { KindSettings, SharingSettings } from '../settings';
import type { Attempts } from './attempts';
import type { Wait } from './wait';

/** What the locks of a registry share for acquisitions. */
export interface ContentionServices extends LeaseServices {
  readonly settings: KindSettings & SharingSettings;
  readonly attempts: Attempts;
  /** A new ticket: an owner value that was never used before. */
  nextTicket(): string;
  /** The protocol of a lock: the one that is still active for its name, or a new one. */
  openProtocol(names: LockNames): LockProtocol;
  /** From now on `close` interrupts the wait. Throws when the registry is closed. */
  begin(wait: Wait): void;
  end(wait: Wait): void;
}
