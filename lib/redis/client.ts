import { EventEmitter } from 'node:events';

export interface EvalOptions {
  keys?: string[];
  arguments?: string[];
}

/** The two commands that the library sends. */
export interface RedisCommands {
  eval(script: string, options?: EvalOptions): Promise<unknown>;
  evalSha(sha1: string, options?: EvalOptions): Promise<unknown>;
}

/**
 * What the library needs from a Redis client, by structure. A client, pool, cluster and sentinel of node-redis 5 and 6
 * have it. Another client has it with an adapter of a few lines.
 */
export interface RedisClient extends RedisCommands {
  /** node-redis: the same client with other options for its commands. */
  withCommandOptions?(options: { timeout?: number; typeMapping?: Record<never, never> }): RedisCommands;
  /** node-redis' plain client: the number of its connections so far. It shows a reconnect. */
  readonly socketEpoch?: number;
  /** node-redis: the application has connected the client and not closed it. */
  readonly isOpen?: boolean;
  /** node-redis: the events of connections that are lost and made again. */
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
}

export function isRedisClient(value: unknown): value is RedisClient {
  const client = value as Partial<RedisClient> | null | undefined;
  return typeof client?.eval === 'function' && typeof client.evalSha === 'function';
}

/**
 * Says what a wrong `client` argument is, by type, and what to pass instead. It never quotes the value: a URL or an
 * options object may contain a password.
 */
export function describeWrongClient(value: unknown): string {
  const expectation = 'Expected `client` to be a Redis client with the methods eval and evalSha';
  const make = 'make a client: createClient({ url })';
  if (typeof value === 'string') return `${expectation}, got a string; ${make}`;
  if (value === null || typeof value !== 'object')
    return `${expectation}, got ${value === null ? 'null' : typeof value}`;
  const ioredis = value as { evalsha?: unknown; defineCommand?: unknown };
  if (typeof ioredis.evalsha === 'function' && typeof ioredis.defineCommand === 'function') {
    return `${expectation}, got an ioredis client; wrap it in an adapter, as README shows under "Other clients"`;
  }
  const kind = value.constructor?.name ?? 'object';
  if (value instanceof EventEmitter || kind !== 'Object') return `${expectation}, got an instance of ${kind}`;
  return `${expectation}, got an options object; ${make}`;
}
