import type { LockInspector } from '../lock-backend';
import { contended } from './contended-protocols';
import type { Protocols } from './lock-type';
import { Notification } from './notification';
import type { Parts } from './parts';
import { PATIENCE, Pollers } from './pollers/pollers';
import type { ScriptedFormat } from './scripted-format';
import { YieldToListeners } from './yield-to-listeners';

/** Contended, with waiting by notification and sharing by yielding to listeners after `slice` ms by default. */
export function notified(parts: Parts, format: ScriptedFormat, inspector: LockInspector, slice: number): Protocols {
  const { idleBetweenTries, handOver = slice } = parts.settings;
  const subscriber = parts.subscriber(format.isSharded, true);
  return contended(inspector, {
    format,
    waiting: (names, pollers, onOthersRelease) =>
      new Notification(names, format, subscriber, idleBetweenTries, pollers, onOthersRelease),
    sharing: () => new YieldToListeners(handOver),
    pollers: () => new Pollers(idleBetweenTries, PATIENCE),
    onNotificationRefused: parts.warnNotificationRefused,
  });
}
