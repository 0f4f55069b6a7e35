import { captureContext } from '../internal/background';
import type { LockType } from '../protocols/lock-type-traits';
import type { WarningListener } from '../warnings';
import { publish, warningChannel } from './channels';
import type { WarningMessage } from './messages';

interface WarningSettings {
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly onWarning: WarningListener;
}

/**
 * Settings whose `onWarning` also publishes. The application's runs in the async context in which the registry was
 * made, and never in that of a caller.
 */
export function publishingWarnings<T extends WarningSettings>(settings: T): T {
  const { lockType, onWarning, registryKey } = settings;
  const run = captureContext();
  return {
    ...settings,
    onWarning(warning) {
      if (warningChannel.hasSubscribers) publish<WarningMessage>(warningChannel, { registryKey, lockType, warning });
      run(() => onWarning(warning));
    },
  };
}
