import type { LockInspector } from '../../core/backend';
import type { Protocols } from '../lock-type';
import { type ContendedParts, ContendedProtocol } from './contended-protocol';

/** The protocols of a lock type for which processes contend. */
export function contended(inspector: LockInspector, parts: ContendedParts): Protocols {
  return {
    inspector,
    open(names) {
      parts.format.assertNames(names);
      return new ContendedProtocol(names, parts);
    },
    close: () => undefined,
  };
}
