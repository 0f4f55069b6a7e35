import { isErrorLike } from '../redis/failure';

/** An error that the server answered. Its name is what `isErrorReply` knows. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

const IS_REDIRECTION = /^(MOVED|ASK) /;

/** The error as the library knows it, where it is an answer of the server. */
export function asServerError(error: unknown): unknown {
  if (!isErrorLike(error) || (error as { code?: unknown }).code !== 'ERR_REDIS_SERVER_ERROR') return error;
  const { message } = error;
  if (!IS_REDIRECTION.test(message)) return new ReplyError(message, { cause: error });
  // Another attempt would go to the same server.
  return new ReplyError(`ERR Bun's RedisClient cannot work with a cluster: ${message}`, { cause: error });
}
