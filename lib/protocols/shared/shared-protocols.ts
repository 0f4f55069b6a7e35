import type { Protocols } from '../lock-types';
import type { Parts } from '../parts';
import { sharedInspector } from './shared-inspection';
import type { SharedKind } from './shared-kinds';
import { SharedProtocol } from './shared-protocol';

/** The protocols of the shared locks of one kind. */
export function createSharedProtocols(kind: SharedKind, parts: Parts): Protocols {
  const services = { kind, parts, subscriber: parts.subscriber(false, true) };
  return {
    inspector: sharedInspector(parts.redis, parts.settings),
    open(names) {
      // Throws for a name whose queue would be in another hash slot.
      names.companion('waiters');
      return new SharedProtocol(names, services);
    },
    close: () => undefined,
  };
}
