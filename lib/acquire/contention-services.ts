import type { LeaseServices } from '../lease/lease-services';
import type { LockProtocol } from '../protocols/protocol';
import type { LockNames } from '../redis/names';
import type { KindSettings, ReplicationSettings } from '../settings';
import type { AttemptSender } from './attempt-sender';
import type { OpenWaits } from './open-waits';
import type { TicketSequence } from './ticket-sequence';

/** What the locks of a registry share for acquisitions. */
export interface ContentionServices extends LeaseServices {
  readonly settings: KindSettings & ReplicationSettings;
  readonly sender: AttemptSender;
  readonly tickets: TicketSequence;
  readonly waits: OpenWaits;
  readonly protocols: ProtocolSource;
}

/** Where locks get their protocols from: the cache, which knows those of evicted locks. */
export interface ProtocolSource {
  /** The protocol of a lock: the one that is still active for its name, or a new one. */
  openProtocol(names: LockNames): LockProtocol;
}
