import type { LockInspector } from '../core/backend';
import type { LockProtocol } from '../core/protocol';
import type { LockNames } from '../redis/names';
import type { RegistryParts } from './registry-parts';

/** The protocols of one registry. */
export interface Protocols {
  readonly inspector: LockInspector;
  /**
   * The protocol of one lock. Throws `RangeError` if the keys that belong to the lock could not share its hash slot.
   */
  open(names: LockNames): LockProtocol;
  /** Ends timers. */
  close(): void;
}

/** One lock type. */
export interface LockTypeDefinition {
  /** Lua that finds whether a lock is held: see `HeldScripts`. */
  readonly held: string;
  /** Called once for each registry. */
  protocols(parts: RegistryParts): Protocols;
}
