/** The kinds of warning. */
export type LockWarningCode =
  | 'RELEASE_FAILED'
  | 'RELEASE_UNCERTAIN'
  | 'SUBSCRIBER_UNAVAILABLE'
  | 'NOTIFICATION_REFUSED'
  | 'SEGMENTS_SHARE_SLOT'
  | 'WARNING_LISTENER_FAILED';

/** Something went wrong that no call can report: no call rejects because of it. */
export interface LockWarning {
  /** A stable name for the kind of warning. */
  readonly code: LockWarningCode;
  readonly message: string;
  readonly key?: string | undefined;
  readonly cause?: unknown;
}

/** Receives warnings. */
export type WarningListener = (warning: LockWarning) => void;

/** The default listener: Node's own channel for warnings, which prints to stderr unless the application listens. */
export const emitProcessWarning: WarningListener = ({ code, message }) => {
  process.emitWarning(message, { type: 'LockWarning', code });
};

/** Reports a warning. A listener that throws does not change how locks behave. */
export function warn(listener: WarningListener, warning: LockWarning): void {
  try {
    listener(warning);
  } catch (error) {
    emitProcessWarning({
      code: 'WARNING_LISTENER_FAILED',
      message: `onWarning threw ${String(error)} for: ${warning.message}`,
    });
  }
}
