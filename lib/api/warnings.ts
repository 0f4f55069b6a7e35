import { inOneLine } from '../internal/validation';

/** The kinds of warning. */
export type LockWarningCode =
  | 'CLOSED_WHILE_HELD'
  | 'GROUP_FAILED'
  | 'LONG_HOLD'
  | 'LONG_WAIT'
  | 'RELEASE_FAILED'
  | 'RELEASE_UNCERTAIN'
  | 'SUBSCRIBER_UNAVAILABLE'
  | 'NOTIFICATION_REFUSED'
  | 'NOT_REPLICATED'
  | 'REDIS_SILENT'
  | 'SEGMENTS_SHARE_SLOT'
  | 'WARNING_LISTENER_FAILED';

/** Who holds a lock that a caller has waited for a long time for. */
export interface LockHolder {
  /** `undefined`: another program wrote the value of the key, which may be a secret. */
  readonly owner: string | undefined;
  /** The name of its registry, by default host and pid; `undefined` for owners of other libraries. */
  readonly name: string | undefined;
  /** ms until the key expires unless it is renewed; `Infinity` without an expiry. */
  readonly remaining: number;
  /** Whether the owner value is one of this process. */
  readonly isThisProcess: boolean;
  /** ms; `undefined` where another registry holds it. */
  readonly heldFor: number | undefined;
  /** The caller is inside a `run` that holds the lock: this may be a deadlock. */
  readonly isAroundCaller: boolean;
}

/** For how long Redis has not answered a registry, and what that affects. */
export interface SilenceOfRedis {
  /** ms since the first request that was not answered; where only renewals fail, since the last one that did not. */
  readonly duration: number;
  /** Leases that cannot be renewed, or whose server is silent. */
  readonly leases: number;
  /** Callers that wait for a lock of such a server. For a lock of several keys, each key that is asked for counts. */
  readonly waiters: number;
  /** ms until the first of the leases ends, if it is not renewed; `undefined`: there are none. */
  readonly firstLeaseEndsIn: number | undefined;
  /** Redis answers again. */
  readonly isOver: boolean;
}

/** Something went wrong that no call can report: no call rejects because of it. */
export interface LockWarning {
  /** A stable name for the kind of warning. */
  readonly code: LockWarningCode;
  readonly message: string;
  readonly key?: string | undefined;
  readonly cause?: unknown;
  /** With `REDIS_SILENT`. */
  readonly silence?: SilenceOfRedis | undefined;
  /** With `LONG_WAIT`, where it is known: by an answer of Redis, which may be the last one before it became silent. */
  readonly holder?: LockHolder | undefined;
  /** With `LONG_HOLD` and the option `captureStack`: where the lock was asked for. */
  readonly stack?: string | undefined;
}

/** A duration in ms, as messages say it: short ones in ms, since none is 0 s. */
export function inWords(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1_000)} s`;
}

/** Receives warnings. */
export type WarningListener = (warning: LockWarning) => void;

/** The default listener: Node's own channel for warnings, which prints to stderr unless the application listens. */
export const emitProcessWarning: WarningListener = ({ code, message, stack }) => {
  process.emitWarning(inOneLine(message), {
    type: 'LockWarning',
    code,
    ...(stack === undefined ? {} : { detail: stack }),
  });
};

/** Reports a warning. A listener that throws, or rejects, does not change how locks behave. */
export function warn(listener: WarningListener, warning: LockWarning): void {
  void report(listener, warning);
}

async function report(listener: WarningListener, warning: LockWarning): Promise<void> {
  try {
    // An application may give an async function.
    await listener({ ...warning, message: inOneLine(warning.message) });
  } catch (error) {
    emitProcessWarning({
      code: 'WARNING_LISTENER_FAILED',
      message: `onWarning threw ${String(error)} for: ${warning.message}`,
    });
  }
}
