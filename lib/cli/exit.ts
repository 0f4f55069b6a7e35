/** Exit codes, those of sysexits(3) where it has one. docs/cli.md has the list. */
export const EXIT = {
  ok: 0,
  /** The command was called wrongly. */
  usage: 64,
  /** Redis is not there, or refuses; or the lock is free where a holder was expected. */
  unavailable: 69,
  /** The command under the lock ended well, but the lock had been lost before. */
  lost: 70,
  /** What was found out could not be written. */
  notWritten: 74,
  /** The lock was not free in time. */
  notFree: 75,
  /** A server, or a key, could not be asked. */
  partial: 76,
  cannotExecute: 126,
  notFound: 127,
  /** Plus the number of the signal. */
  signal: 128,
} as const;

/** An end of the program with one line of explanation. */
export class ExitError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function usageError(message: string): ExitError {
  return new ExitError(EXIT.usage, message);
}
