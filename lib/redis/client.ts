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
 * have it. `fromIoredis`, `fromGlide`, `fromBun` and `fromUpstash` make it of other clients, and an adapter of a few
 * lines of any.
 */
export interface RedisClient extends RedisCommands {
  /** node-redis: the same client with other options for its commands. */
  withCommandOptions?(options: { timeout?: number; typeMapping?: Record<never, never> }): RedisCommands;
  /** node-redis' plain client: the number of its connections so far. It shows a reconnect. */
  readonly socketEpoch?: number;
  /** node-redis: the application has connected the client and not closed it. */
  readonly isOpen?: boolean;
  /** `false` while the client has no connection. */
  readonly isReady?: boolean;
  /** An adapter for a client that gets no messages: ms between two polls, by default. Locks are of type `spin`. */
  readonly pollInterval?: number;
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
  return hasCommands(value) && !hasKeyPrefix(value);
}

function hasCommands(value: unknown): boolean {
  const client = value as Partial<RedisClient> | null | undefined;
  return typeof client?.eval === 'function' && typeof client.evalSha === 'function';
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
export function describeValue(value: unknown, adapted = NODE_REDIS): string {
  const make = `make a client: ${adapted.make}`;
  if (typeof value === 'string') return `a string; ${make}`;
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  const has = (...names: string[]): boolean => names.every((name) => name in value);
  const wrap = (client: string, call: string, entryPoint: string): string =>
    entryPoint === adapted.entryPoint
      ? likeOne
      : `${client}; wrap it: ${call}, the adapter in 'redis-lock-registry/${entryPoint}'`;
  const missing = missingMembers(value, adapted);
  const likeOne = `an object without ${missing.map((name) => `\`${name}\``).join(', ')}, as a mock; ${WITHOUT_REDIS}`;
  if (has('evalsha', 'defineCommand')) return wrap('an ioredis or iovalkey client', 'fromIoredis(redis)', 'ioredis');
  if (has('invokeScript', 'customCommand')) return wrap('a valkey-glide client', 'fromGlide(client)', 'valkey-glide');
  if (has('send', 'evalsha', 'duplicate', 'connected')) return wrap('a client of Bun', 'fromBun(client)', 'bun');
  if (has('evalsha', 'createScript')) return wrap('a client of @upstash/redis', 'fromUpstash(redis)', 'upstash');
  if (missing.length < Object.keys(adapted.members).length) return likeOne;
  const kind = value.constructor?.name ?? 'Object';
  return kind === 'Object' ? `an options object; ${make}` : `an instance of ${kind}`;
}

/** A kind of client that an error speaks of. */
export interface AdaptedKind {
  /** What the adapter expects. */
  readonly what: string;
  /** How one is made. */
  readonly make: string;
  /** Of the adapter; empty: it needs none. */
  readonly entryPoint: string;
  /** The members that the adapter uses, with their types. `a.b` is a member of a member. */
  readonly members: Readonly<Record<string, 'boolean' | 'function' | 'object' | 'string'>>;
}

const NODE_REDIS: AdaptedKind = {
  what: 'a client of node-redis',
  make: 'createClient({ url })',
  entryPoint: '',
  members: {},
};

/** For tests, which pass mocks of clients. */
const WITHOUT_REDIS = "for tests without a Redis there is InMemoryLockRegistry in 'redis-lock-registry/testing'";

/** Which members of that kind of client the value does not have. */
export function missingMembers(value: unknown, { members }: Pick<AdaptedKind, 'members'>): string[] {
  const memberOf = (of: unknown, name: string): unknown => (of as Record<string, unknown> | null | undefined)?.[name];
  return Object.keys(members).filter((path) => typeof path.split('.').reduce(memberOf, value) !== members[path]);
}

/**
 * The error of an adapter about a value that is none of its clients. It may be a client that needs another adapter, or
 * none. What is missing is named where the value is an object like one.
 */
export function notAdapted(value: unknown, kind: AdaptedKind): TypeError {
  if (hasCommands(value)) {
    const needsNone = 'a client that needs no adapter, as those of node-redis: pass it to RedisLockRegistry as it is';
    return new TypeError(`Expected ${kind.what}, got ${needsNone}`);
  }
  return new TypeError(`Expected ${kind.what}, got ${describeValue(value, kind)}`);
}

/** A connection of our own, made with `duplicate()` of a client. */
export interface OwnConnection {
  on(event: string, listener: () => void): unknown;
  connect(): Promise<unknown>;
  destroy(): unknown;
  unref?(): void;
  /** `false` once it is closed for good. */
  readonly isOpen?: boolean;
  /** `destroy` ends it in any state. Of node-redis, a socket stays open that connects after `destroy`. */
  readonly endsAtOnce?: boolean;
}

/** Never throws: with redis 5, a connection that is closed already does. */
export async function destroy(connection: OwnConnection): Promise<void> {
  try {
    await connection.destroy();
  } catch {}
}

/** What node-redis' plain client has beside a method for each command. */
interface PlainClient extends RedisClient {
  /** Its options: those of the application, and those of `withTypeMapping` and its like. */
  readonly options?: { readonly commandOptions?: { readonly typeMapping?: unknown } };
  readonly _commandOptions?: { readonly typeMapping?: unknown };
  sendCommand(args: string[], options: object): Promise<unknown>;
}

/**
 * The commands of a client, without node-redis' own timeout, and with replies in their own types, though the application
 * made its client answer with Buffers.
 */
export function commandsOf(client: RedisClient & Partial<PlainClient>): RedisCommands {
  // node-redis' plain client: one connection to one server, as far as it knows.
  const isPlain = client.socketEpoch !== undefined && '_commandOptions' in client;
  const { _commandOptions: own, options } = client;
  const hasMapping = (own?.typeMapping ?? options?.commandOptions?.typeMapping) !== undefined;
  // The client copies the options for every command: without a type mapping, it is not asked to have none.
  const ours = isPlain && !hasMapping ? { timeout: 0 } : { timeout: 0, typeMapping: {} };
  const commands = (client.withCommandOptions?.(ours) ?? client) as PlainClient;
  if (!isPlain) return commands;
  // The methods of node-redis for single commands make a parser and two more promises each.
  const running =
    (command: string): RedisCommands['eval'] =>
    (script, { keys = [], arguments: args = [] } = {}) =>
      commands.sendCommand([command, script, String(keys.length), ...keys, ...args], ours);
  return { eval: running('EVAL'), evalSha: running('EVALSHA') };
}
