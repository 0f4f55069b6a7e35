import { ClientClosedError, isErrorLike } from '../redis/failure';

/** What valkey-glide calls the error codes of a server. Others it leaves as they are. */
const CODES: Readonly<Record<string, string>> = {
  Ask: 'ASK',
  BusyLoadingError: 'LOADING',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  ExecAbortError: 'EXECABORT',
  MasterDown: 'MASTERDOWN',
  Moved: 'MOVED',
  NoScriptError: 'NOSCRIPT',
  PermissionDenied: 'NOPERM',
  ReadOnly: 'READONLY',
  ResponseError: 'ERR',
  TryAgain: 'TRYAGAIN',
};

/** `An error was signalled by the server: - NoScriptError: No matching script.` */
const NAMED = /^An error was signalled by the server: - (\w+): (.*)$/s;

/** `WRONGTYPE: Operation against a key holding the wrong kind of value` */
const WITH_CODE = /^([A-Z]{3,}): (.*)$/s;

/** The error as the server wrote it, code first, where it is an answer of the server. */
export function asServerError(error: unknown): unknown {
  if (!isErrorLike(error)) return error;
  if (error.constructor.name === 'ClosingError') return new ClientClosedError(error.message);
  const [, name, text] = NAMED.exec(error.message) ?? [];
  if (name !== undefined) return new Error(`${CODES[name] ?? name.toUpperCase()} ${text}`, { cause: error });
  const [, code, rest] = WITH_CODE.exec(error.message) ?? [];
  return code === undefined ? error : new Error(`${code} ${rest}`, { cause: error });
}
