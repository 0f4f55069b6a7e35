/** What the adapter needs of an instance of ioredis or iovalkey, by structure. It imports neither of them. */
export interface Ioredis {
  readonly isCluster: boolean;
  /** `end`: closed for good. */
  readonly status: string;
  eval(script: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  evalsha(sha1: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  disconnect(): void;
}

/** It also takes any command, as lists of words, and calls back with any arguments. */
interface Internals {
  call(name: string, ...args: string[]): Promise<unknown>;
  on(event: string | symbol, listener: (...args: never[]) => void): unknown;
  off(event: string | symbol, listener: (...args: never[]) => void): unknown;
}

/** What the adapter looks at in the options of an instance. */
export interface IoredisOptions {
  readonly keyPrefix?: string;
  readonly stringNumbers?: boolean;
  readonly monitor?: boolean;
  readonly autoResendUnfulfilledCommands?: boolean;
  /** Of a node of a cluster. */
  readonly host?: string;
  readonly port?: number;
  /** Of a cluster. */
  readonly redisOptions?: IoredisOptions;
}

/** `Redis` of ioredis: one server, or the master that sentinels name. */
export interface SingleIoredis extends Omit<Ioredis, keyof Internals>, Internals {
  readonly options: IoredisOptions;
  /** The socket of the current connection. */
  readonly stream: { unref?(): unknown; destroy?(): unknown } | undefined;
  /** `disconnect` was called. */
  readonly manuallyClosing?: boolean;
  connect(): Promise<unknown>;
  duplicate(overrides: object): SingleIoredis;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** ioredis 5.4 and later. */
  ssubscribe?(channel: string): Promise<unknown>;
  sunsubscribe?(channel: string): Promise<unknown>;
}

/** `Cluster` of ioredis. */
export interface ClusterIoredis extends Omit<Ioredis, keyof Internals>, Internals {
  readonly options: IoredisOptions;
  /** For each slot `host:port` of its master, then of its replicas. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role: 'master'): SingleIoredis[];
}

/** Sends a command. ioredis knows the keys of those in small letters. */
export function send(redis: Internals, [name = '', ...args]: readonly string[]): Promise<unknown> {
  return redis.call(name.toLowerCase(), ...args);
}

/** `host:port`, as in `slots`. */
export function addressOf({ options }: SingleIoredis): string {
  return `${options.host}:${options.port}`;
}

export function ignore(): void {}
