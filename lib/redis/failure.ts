/** Redis did not answer in time: whether the command was or will be executed is unknown. */
export class CommandTimeoutError extends Error {
  override readonly name = 'CommandTimeoutError';
  /** The answer that may still come. */
  readonly late: Promise<unknown>;

  constructor(elapsed: number, late: Promise<unknown>) {
    super(`Redis did not answer within ${Math.round(elapsed)} ms`);
    this.late = late;
    // Whoever needs the late answer looks at it; nobody else is to hear of it.
    late.catch(() => undefined);
  }
}

/** Answers of a server that will be able to execute the command at another time. */
const PASSING = new Set([
  'LOADING',
  'BUSY',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'MISCONF',
  'NOREPLICAS',
  'MOVED',
  'ASK',
]);

/** Errors of the client that waiting does not mend. */
const FINAL_CLIENT_ERRORS = new Set(['ClientClosedError']);

/**
 * The error code with which an answer of the server begins, `undefined` for what is not an answer of the server.
 * By text and not by class: there is one class for each copy of node-redis, and other clients have their own.
 * Servers before 7 put an error inside of a script behind a preamble that ends with the script's line number.
 */
export function serverErrorCode(error: unknown): string | undefined {
  const message = error instanceof Error || isErrorLike(error) ? error.message : '';
  return /user_script:\s*\d+:\s*-?([A-Z]{3,})\s/.exec(message)?.[1] ?? /^-?([A-Z]{3,})\s/.exec(message)?.[1];
}

export function isNoScript(error: unknown): boolean {
  return serverErrorCode(error) === 'NOSCRIPT';
}

/** The server does not have the command: it is too old for it, or it was renamed. */
export function isUnknownCommand(error: unknown): boolean {
  return (error instanceof Error || isErrorLike(error)) && /unknown command/i.test(error.message);
}

/** No retry can mend it: the server refused for good (no rights, wrong type, out of memory …), or the client is closed. */
export function isFinal(error: unknown): boolean {
  const code = serverErrorCode(error);
  if (code !== undefined) return !PASSING.has(code);
  return error instanceof Error && FINAL_CLIENT_ERRORS.has(error.constructor.name);
}

/** The server answered: the command was not executed. Anything else, a lost connection for one, leaves that unknown. */
export function isServerAnswer(error: unknown): boolean {
  return serverErrorCode(error) !== undefined;
}

/** An Error of another realm, a test environment's for one, is no instance of ours. */
export function isErrorLike(error: unknown): error is Error {
  return typeof (error as Partial<Error> | null)?.message === 'string';
}
