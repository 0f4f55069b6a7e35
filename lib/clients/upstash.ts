import type { AdaptedKind, RedisClient } from '../redis/client';
import { isErrorLike, ReplyError } from '../redis/failure';
import { adapterOf } from './common/adapter-of';
import { WordsClient } from './common/subscriptions';

/** What the adapter needs of `Redis` of `@upstash/redis`, by structure. It does not import the package. */
export interface Upstash {
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
  createScript(script: string): unknown;
}

/** What `Redis` sends its commands with. Its methods would parse replies as JSON: a lock's owner may look like some. */
interface Requester {
  readonly options?: { readonly signal?: AbortSignal | (() => AbortSignal) };
  request(request: { body: string[] }): Promise<{ result?: unknown; error?: string }>;
}

const KIND: AdaptedKind = {
  what: 'a Redis of @upstash/redis',
  make: 'new Redis({ url, token })',
  entryPoint: 'upstash',
  members: { createScript: 'function', 'client.request': 'function' },
};

/** ms; each poll is a request that is billed. */
const POLL_INTERVAL = 500;

/**
 * Makes the client that `RedisLockRegistry` needs of a `Redis` of `@upstash/redis`, which speaks HTTP. Locks are of type
 * `spin`, and waiters poll, by default every 500 ms (`idleBetweenTries`): no message comes over HTTP. It has no
 * `minReplicas`. The client stays the caller's: it is not changed.
 * @throws TypeError when it is no such client.
 * @example
 * const registry = new RedisLockRegistry(fromUpstash(Redis.fromEnv()), { registryKey: 'orders' });
 */
export function fromUpstash(redis: Upstash): RedisClient {
  return adapterOf(redis, KIND, ({ client }: { client: Requester }) => new UpstashClient(client));
}

class UpstashClient extends WordsClient implements RedisClient {
  readonly pollInterval = POLL_INTERVAL;
  readonly #requester: Requester;

  constructor(requester: Requester) {
    super();
    this.#requester = requester;
  }

  readonly scan = this.scanPage;

  protected async command(words: readonly string[]): Promise<unknown> {
    const { result, error } = await this.#requester.request({ body: [...words] }).catch((failure: unknown) => {
      throw asServerError(failure);
    });
    const { signal } = this.#requester.options ?? {};
    // The package answers an aborted request itself, with the reason of the signal, as if Redis had said that.
    if (typeof signal === 'object') signal.throwIfAborted();
    if (error !== undefined) throw new ReplyError(error);
    return result;
  }
}

/** The error as the server wrote it, where it is an answer: without the command, which may be a long script. */
function asServerError(error: unknown): unknown {
  if (!isErrorLike(error) || error.name !== 'UpstashError') return error;
  return new ReplyError(error.message.replace(/, command was: \[.*$/s, ''));
}
