import { inspect } from 'node:util';
import { Timer } from '../internal/clock';
import { knownAcrossCopies } from '../internal/copies';
import { type Answer, answerIn, isInScript, type ServerErrorName } from './server-errors';

/**
 * Reply for a lock that was asked for together with others, all or none, and that the script skipped, because one of the
 * others is taken. It was free and is untouched.
 */
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

/** What the server said; `undefined` for an error that is no answer of the server. */
function answerOfServer(error: unknown): Answer | undefined {
  return isErrorLike(error) ? answerIn(error.message) : undefined;
}

/**
 * The error code with which an answer of the server begins; `undefined` for an error that is no answer of the server.
 * Read from the text and not from the class: each copy of node-redis has its own classes, and so has each other client.
 */
export function serverErrorCode(error: unknown): string | undefined {
  return answerOfServer(error)?.code;
}

/** Whether the server answered with one of these errors. */
export function says(error: unknown, ...names: readonly ServerErrorName[]): boolean {
  const answer = answerOfServer(error);
  return answer !== undefined && names.includes(answer.name);
}

/** The server does not know the script. An error of a script's own may begin with the same code. */
export function isNoScript(error: unknown): boolean {
  return says(error, 'noScript') && !isOfScript(error);
}

/** The server does not have the command: it is too old for it, or the command was renamed. */
export function isUnknownCommand(error: unknown): boolean {
  return says(error, 'unknownCommand');
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
  const answer = answerOfServer(error);
  if (answer !== undefined) return !answer.passes;
  return isClientClosed(error) || error instanceof UnexpectedReplyError;
}

/** The server refused to run a script: it has read its command, and no line of it was executed. */
export function isNotExecuted(error: unknown): boolean {
  return says(error, 'noAuth', 'noAuthForLong', 'noRightToScripts') && !isOfScript(error);
}

/** The user lacks a right: to the command, to one in a script, or to a key or channel of them. */
export function isRightRefused(error: unknown): boolean {
  return says(error, 'noRight', 'noRightToScripts', 'noRightInScript');
}

/** WAIT was given to a server that was a replica by then. */
export function isOfReplica(error: unknown): boolean {
  return says(error, 'waitOnReplica', 'unblocked');
}

/** The node of a cluster to which the server redirects a command; `isAsked`: for this time only. */
export function redirectionIn(error: unknown): { readonly to: string; readonly isAsked: boolean } | undefined {
  const answer = answerOfServer(error);
  return answer?.to === undefined ? undefined : { to: answer.to, isAsked: answer.name === 'ask' };
}

/** The error says that nothing of a script was or will be executed: it was not sent, or the server refused to run it. */
export function isWithoutEffect(error: unknown): boolean {
  return error instanceof NotSentError || isClientClosed(error) || isNotExecuted(error);
}

/** A command in a script was refused, perhaps after the first half of the script. */
export function isOfScript(error: unknown): boolean {
  return isErrorLike(error) && isInScript(error.message);
}

/** The server answered with an error that may have stopped a script half-way. */
export function mayHaveWritten(error: unknown): boolean {
  const answer = answerOfServer(error);
  return answer !== undefined && (!answer.passes || answer.stopsHalfWay);
}

/** The server answered. Any other error, such as a lost connection, leaves unknown whether the command was executed. */
export function isServerAnswer(error: unknown): boolean {
  return answerOfServer(error) !== undefined;
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

/** The message of an error, with what to do about it where it does not say that, or whatever else was thrown as text. */
export function messageOf(error: unknown): string {
  if (!isErrorLike(error)) return String(error);
  const advice = answerIn(error.message)?.advice ?? adviceOnClosed(error);
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
