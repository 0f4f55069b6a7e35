import type { LockInspector } from '../../core/backend';
import type { ScriptedFormat } from '../format/scripted-format';
import type { Protocols } from '../lock-type';
import { USUAL_PACE_FOR } from '../pollers';
import type { RegistryParts } from '../registry-parts';
import { YieldToListeners } from '../sharing/yield-to-listeners';
import { Notification } from '../waiting/notification';
import { contended } from './contended';

/** Contended, with waiting by notification and sharing by yielding to listeners after `slice` ms by default. */
export function notified(
  parts: RegistryParts,
  format: ScriptedFormat,
  inspector: LockInspector,
  slice: number,
): Protocols {
  const { idleBetweenTries, handOver = slice } = parts.settings;
  const subscriber = parts.subscriber(format.isSharded, true);
  return contended(inspector, {
    format,
    waiting: (names, pollers, onOthersRelease) =>
      new Notification(names, format, subscriber, idleBetweenTries, pollers, onOthersRelease),
    sharing: () => new YieldToListeners(handOver),
    handsOver: handOver > 0,
    pollers: () => parts.pollers(USUAL_PACE_FOR),
    onNotificationRefused: parts.warnNotificationRefused,
  });
}
