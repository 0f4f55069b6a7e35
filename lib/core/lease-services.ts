import type { KindSettings } from '../api/options';
import type { Connection } from '../redis/connection';
import type { ScriptRunner } from './backend';
import type { GivingBack } from './give-back';
import type { InboxOfLease } from './internal-lease';
import type { LongHolds } from './long-holds';
import type { Released } from './protocol';

/** What the leases of a registry share. */
export interface LeaseServices {
  readonly settings: KindSettings;
  readonly connection: Connection;
  readonly givingBack: GivingBack;
  readonly leaseScripts: ScriptRunner;
  readonly inbox: InboxOfLease;
  /** With `warnHeldAfter`. */
  readonly longHolds: LongHolds | undefined;
}

/** A hold went to the next caller; or what became of it in place of that. */
export type PassedOn = 'passed on' | Promise<Released | 'passed on'>;
