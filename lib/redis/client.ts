export interface EvalOptions {
  keys?: string[];
  arguments?: string[];
}

/** The two commands that the library runs its scripts with. SUBSCRIBE goes over the pub/sub connection. */
export interface RedisCommands {
  eval(script: string, options?: EvalOptions): Promise<unknown>;
  evalSha(sha1: string, options?: EvalOptions): Promise<unknown>;
}

/**
 * What the library needs from a Redis client, by structure. A client, pool, cluster and sentinel of node-redis 5 and 6
 * have it. `fromIoredis`, `fromGlide` and `fromBun` make it of other clients, and an adapter of a few lines of any.
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

/**
 * A client that `RedisLockRegistry` takes. Its name is what the compiler prints for a client that needs an adapter, such
 * as an instance of ioredis: so it names one.
 */
export interface RedisClientOrFromIoredis extends RedisClient {}

/** Whether the library can work with it. */
export function isRedisClient(value: unknown): value is RedisClient {
  const client = value as Partial<RedisClient> | null | undefined;
  return typeof client?.eval === 'function' && typeof client.evalSha === 'function' && !hasKeyPrefix(client);
}

/** All clients of node-redis have it; 6.1 and later. */
function hasKeyPrefix(value: unknown): boolean {
  const { _keyPrefix: prefix } = (value ?? {}) as { _keyPrefix?: { readonly length: number } };
  return prefix !== undefined && prefix.length > 0;
}

/** Says what a wrong `client` argument is, and what to pass instead. */
export function describeWrongClient(value: unknown): string {
  if (hasKeyPrefix(value)) {
    const why = 'node-redis puts it before the keys of a lock, but not before its channels. Use `registryKey`';
    return `Expected \`client\` to be a client without the option keyPrefix: ${why}`;
  }
  return `Expected \`client\` to be a Redis client with the methods eval and evalSha, got ${describeValue(value)}`;
}

/**
 * Says what a value is that should have been a client, by type, and what to do. It never quotes the value: a URL or an
 * options object may contain a password.
 */
export function describeValue(value: unknown): string {
  const make = 'make a client: createClient({ url })';
  if (typeof value === 'string') return `a string; ${make}`;
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  const has = (...methods: string[]): boolean =>
    methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
  if (has('evalsha', 'defineCommand')) {
    return adaptable('an ioredis or iovalkey client', 'fromIoredis(redis)', 'ioredis');
  }
  if (has('invokeScript', 'customCommand')) {
    return adaptable('a valkey-glide client', 'fromGlide(client)', 'valkey-glide');
  }
  if (has('send', 'evalsha', 'duplicate') && 'connected' in value) {
    return adaptable('a client of Bun', 'fromBun(client)', 'bun');
  }
  const kind = value.constructor?.name ?? 'Object';
  return kind === 'Object' ? `an options object; ${make}` : `an instance of ${kind}`;
}

/** As `describeValue`, for the argument of an adapter: it may be a client that needs none. */
export function describeForAdapter(value: unknown): string {
  const client = value as Partial<RedisClient> | null | undefined;
  const needsNone = typeof client?.eval === 'function' && typeof client.evalSha === 'function';
  return needsNone
    ? 'a client that needs no adapter, as those of node-redis: pass it to RedisLockRegistry as it is'
    : describeValue(value);
}

function adaptable(client: string, call: string, entryPoint: string): string {
  return `${client}; wrap it: ${call}, the adapter in 'redis-lock-registry/${entryPoint}'`;
}
