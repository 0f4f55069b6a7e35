import type { LockInspector } from '../lock-backend';
import type { LockNames } from '../redis/names';
import type { LockType } from './lock-type-traits';
import type { LockProtocol } from './protocol';
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

/** One lock type. Each is in a file of its own, so that using one type does not load the others. */
export interface LockTypeDefinition {
  readonly name: LockType;
  /** Lua that finds whether a lock is held: see `HeldScripts`. */
  readonly held: string;
  /** Called once for each registry. */
  protocols(parts: RegistryParts): Protocols;
}
