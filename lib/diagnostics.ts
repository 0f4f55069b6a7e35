/** Something that went wrong, and that is nobody's error: no call rejects because of it. */
export interface LockWarning {
  /** Stable name of the kind of warning. */
  readonly code: string;
  readonly message: string;
  readonly key?: string | undefined;
  readonly cause?: unknown;
}

export type WarningListener = (warning: LockWarning) => void;

/** The default listener: Node's own channel for warnings, which prints to stderr unless the application listens. */
export const emitProcessWarning: WarningListener = ({ code, message }) => {
  process.emitWarning(message, { type: 'LockWarning', code });
};

/** Reports a warning. A listener that throws must not change how locks behave. */
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
