import { inspect } from 'node:util';
import { Timer } from '../internal/clock';
import { knownAcrossCopies } from '../internal/copies';

/** In place of an answer about a lock that is free, and was not asked for: one before it is taken. */
export const NOT_ASKED = Symbol('not asked');

/** Redis did not answer in time: whether the command was or will be executed is unknown. */
export class CommandTimeoutError extends Error {
  override readonly name = 'CommandTimeoutError';
  /** The answer that may still come. */
  readonly late: Promise<unknown>;

  constructor(elapsed: number, late: Promise<unknown>) {
    super(`Redis did not answer within ${Math.round(elapsed)} ms`);
    this.late = late;
    late.catch(() => undefined);
  }
}

/** `reply`, or CommandTimeoutError. `timeout` in ms. */
export function answered<T>(reply: Promise<T>, timeout: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = new Timer(timeout, () => reject(new CommandTimeoutError(timeout, reply)));
    void reply.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Redis was not asked in time: what was to be sent was not, and never will be. It leaves nothing in Redis. */
export class NotSentError extends CommandTimeoutError {
  constructor(elapsed: number) {
    super(elapsed, Promise.reject(new Error('It was not sent')));
  }
}

/** The answer, also one that comes after its deadline. */
export async function answerOf<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    if (!(error instanceof CommandTimeoutError) || error instanceof NotSentError) throw error;
    return answerOf(error.late as Promise<T>);
  }
}

/** Redis granted a lock, and its answer took longer than the ttl. */
export class LateGrantError extends Error {
  override readonly name = 'LateGrantError';

  /** `ttl` in ms. */
  constructor(ttl: number) {
    super(`Redis answered so late that nothing was left of the ttl of ${ttl} ms`);
  }
}

/** A reply that the script cannot have made: it belongs to another command, or a mock made it. */
export class UnexpectedReplyError extends Error {
  override readonly name = 'UnexpectedReplyError';

  constructor(script: string, reply: unknown) {
    const shown = inspect(reply, { depth: 1, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 100 });
    super(`Redis replied ${shown} to the script "${script}", which cannot return that`);
  }
}

/** Error codes of a server that will be able to execute the command at another time. */
const TRANSIENT = new Set([
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

/**
 * The error code with which an answer of the server begins; `undefined` for an error that is no answer of the server.
 * Read from the text and not from the class: each copy of node-redis has its own classes, and so has each other client.
 * Servers before 7 put an error inside a script behind a preamble that ends with the script's line number.
 */
export function serverErrorCode(error: unknown): string | undefined {
  if (!isErrorLike(error)) return undefined;
  const { message } = error;
  return /user_script:\s*\d+:\s*-?([A-Z]{3,})\s/.exec(message)?.[1] ?? /^-?([A-Z]{3,})\s/.exec(message)?.[1];
}

/** The server does not know the script. An error of a script's own may begin with the same code. */
export function isNoScript(error: unknown): boolean {
  return isErrorLike(error) && /^-?NOSCRIPT No matching script/i.test(error.message);
}

/** The server does not have the command: it is too old for it, or the command was renamed. */
export function isUnknownCommand(error: unknown): boolean {
  return isErrorLike(error) && /unknown command/i.test(error.message);
}

/** For clients other than node-redis, which has one of its own. */
export class ClientClosedError extends Error {
  override readonly name = 'ClientClosedError';
}

/** The application has closed the client: nothing will be sent any more. A minifier changes the name of node-redis' class. */
export function isClientClosed(error: unknown): boolean {
  return isErrorLike(error) && (error.name === 'ClientClosedError' || error.message === 'The client is closed');
}

/**
 * A retry cannot help: the server refused permanently (no rights, wrong type, out of memory …), or the client is
 * closed.
 */
export function isFinal(error: unknown): boolean {
  const code = serverErrorCode(error);
  if (code !== undefined) return !TRANSIENT.has(code) && !isOnTheMove(error);
  return isClientClosed(error) || error instanceof UnexpectedReplyError;
}

/**
 * In what a server says to a user without the right to a command, a key or a channel: alone; in a script, up to Redis
 * 7.0; in a script, from Redis 7.2 and Valkey 8 on.
 */
export const NO_PERMISSION: readonly string[] = ['NOPERM ', 'The user executing ', 'ACL failure in script'];

/** The user has not the right to what was sent, or to what a script sends. */
export function isNoPermission(error: unknown): boolean {
  return isErrorLike(error) && NO_PERMISSION.some((text) => error.message.includes(text));
}

/** The server refused to run a script: it has read its command, and no line of it was executed. */
export function isNotExecuted(error: unknown): boolean {
  const refusal = /^-?(NOAUTH |NOPERM .*( 'eval(sha)?'| access (a|one of the) key))/i;
  return isErrorLike(error) && refusal.test(error.message) && !isOfScript(error);
}

/** The error says that nothing of a script was or will be executed: it was not sent, or the server refused to run it. */
export function isWithoutEffect(error: unknown): boolean {
  return error instanceof NotSentError || isClientClosed(error) || isNotExecuted(error);
}

/** A command in a script was refused, perhaps after the first half of the script. */
export function isOfScript(error: unknown): boolean {
  return isErrorLike(error) && /\bscript: |user_script/.test(error.message);
}

/** The server answered with an error that may have stopped a script half-way. */
export function mayHaveWritten(error: unknown): boolean {
  return isServerAnswer(error) && (isFinal(error) || isOnTheMove(error));
}

/** While its slot moves to another node, a script cannot use a key any more that it has removed, or that has expired. */
function isOnTheMove(error: unknown): boolean {
  return isErrorLike(error) && /attempted to access a non local key/.test(error.message);
}

/** The server answered. Any other error, such as a lost connection, leaves unknown whether the command was executed. */
export function isServerAnswer(error: unknown): boolean {
  return serverErrorCode(error) !== undefined;
}

/** For clients other than node-redis and ioredis: an error that the server answered. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** The prototypes of errors with which clients have reported an answer of a server: a minifier changes the names of classes. */
const REPLIES = new WeakSet<object>();

/** The prototype of the class of an error. `undefined`: it is none of a client's, as that of all errors is. */
function classOf(error: unknown): object | undefined {
  const prototype = error !== null && typeof error === 'object' ? Object.getPrototypeOf(error) : null;
  const parent = prototype && Object.getPrototypeOf(prototype);
  return parent && Object.getPrototypeOf(parent) !== null ? prototype : undefined;
}

/** `error`: known to be an answer of the server. Others of its class are too, whatever their text. */
export function noteErrorReply(error: unknown): void {
  const noted = classOf(error);
  if (noted !== undefined) REPLIES.add(noted);
}

/**
 * The server answered with an error, whatever its text: a script may return any. By the name of its class, as
 * node-redis (ErrorReply) and ioredis (ReplyError) have it, or by what was noted of its class.
 */
export function isErrorReply(error: unknown): boolean {
  for (let one = error; one !== null && typeof one === 'object'; one = Object.getPrototypeOf(one)) {
    if ([one.constructor?.name, (one as Error).name].some((name) => name === 'ErrorReply' || name === 'ReplyError'))
      return true;
  }
  const noted = classOf(error);
  return (noted !== undefined && REPLIES.has(noted)) || isServerAnswer(error);
}

/**
 * The error may be an answer of the server, or the client's own: nothing is known of its class yet. That of the system has
 * a code.
 */
export function mayBeErrorReply(error: unknown): boolean {
  if (!isErrorLike(error) || classOf(error) === undefined || 'code' in error) return false;
  return !(isErrorReply(error) || isClientClosed(error) || isOfRedis(error));
}

/** An Error of another realm, such as that of a test environment, is no instance of ours. */
export function isErrorLike(error: unknown): error is Error {
  return typeof (error as Partial<Error> | null)?.message === 'string';
}

/** What to do about answers of the server whose own text does not say it, by their code. */
const ADVICE: Readonly<Record<string, string>> = {
  READONLY: 'this server is a replica: connect to the master',
  NOAUTH: 'the client has no password, or a wrong one',
  MOVED: 'another node of the cluster has this key: only a client of the cluster finds it',
};

/** The message of an error, with what to do about it where it does not say that, or whatever else was thrown as text. */
export function messageOf(error: unknown): string {
  if (!isErrorLike(error)) return String(error);
  const advice = ADVICE[serverErrorCode(error) ?? ''] ?? adviceOnClosed(error);
  // Node's error for a host name with several addresses has an empty message.
  const text = error.message || String((error as { readonly code?: unknown }).code ?? error.name);
  return advice === undefined ? text : `${text} (${advice})`;
}

/** `messageOf`. An error that neither an answer of Redis nor its silence has made is the client's, and says so. */
export function reasonOf(error: unknown): string {
  return isErrorReply(error) || isOfRedis(error) ? messageOf(error) : `the client failed: ${messageOf(error)}`;
}

/** We have made it of the silence of Redis, or of what it answered. */
function isOfRedis(error: unknown): boolean {
  return OF_REDIS.some((type) => error instanceof type);
}

// An adapter, or locks in memory, may be of another copy of the library than the registry.
knownAcrossCopies({ CommandTimeoutError, NotSentError, LateGrantError, UnexpectedReplyError, ClientClosedError });

const OF_REDIS = [CommandTimeoutError, LateGrantError, UnexpectedReplyError];

/** What explains a failure: after a silence the last error of the client, if it has had one since it was connected. */
export function causeOf(failure: unknown, { lastError }: { readonly lastError: unknown }): unknown {
  return failure === undefined || failure instanceof CommandTimeoutError ? (lastError ?? failure) : failure;
}

/** node-redis says the same of a client that was closed and of one that was never connected. */
function adviceOnClosed(error: Error): string | undefined {
  const isOfNodeRedis = isClientClosed(error) && !(error instanceof ClientClosedError);
  return isOfNodeRedis ? 'or it was never connected: call its connect() first' : undefined;
}
