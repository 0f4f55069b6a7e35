import type { LockInspector, ScriptRunner, SharedBackend } from '../../core/backend';
import type { LockProtocol } from '../../core/protocol';
import type { LockNames } from '../../redis/names';
import { HeldScripts } from '../held-scripts';
import type { RegistryParts } from '../registry-parts';
import { sharedInspector } from './shared-inspection';
import type { SharedKind } from './shared-kinds';
import { SharedProtocol } from './shared-protocol';
import { memberHeld } from './shared-scripts';

/** The shared locks of one registry in Redis. */
export class RedisSharedBackend implements SharedBackend {
  readonly inspector: LockInspector;
  readonly #parts: RegistryParts;

  constructor(parts: RegistryParts) {
    this.#parts = parts;
    this.inspector = sharedInspector(parts.redis, parts.settings);
  }

  open(kind: SharedKind, names: LockNames): LockProtocol {
    // Throws for a name whose queue would be in another hash slot.
    names.companion('waiters');
    const parts = this.#parts;
    return new SharedProtocol(names, { kind, parts, subscriber: parts.subscriber(false, true) });
  }

  heldScripts(kind: SharedKind): ScriptRunner {
    return new HeldScripts(this.#parts.redis, memberHeld(kind));
  }
}
