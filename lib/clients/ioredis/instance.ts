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

/** What the adapter looks at in the options of an instance. */
export interface IoredisOptions {
  readonly keyPrefix?: string;
  readonly stringNumbers?: boolean;
  readonly monitor?: boolean;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly enableAutoPipelining?: boolean;
  /** The host of a node of a cluster. */
  readonly host?: string;
  readonly port?: number;
  /** The options of a cluster for its nodes. */
  readonly redisOptions?: IoredisOptions;
}

/** A client also takes any command, as lists of words, and calls back with any arguments. */
interface Internals extends Omit<Ioredis, 'on' | 'off'> {
  readonly options: IoredisOptions;
  /** `disconnect` or `quit` was called. */
  readonly manuallyClosing?: boolean;
  call(name: string, ...args: string[]): Promise<unknown>;
  on(event: string | symbol, listener: (...args: never[]) => void): unknown;
  off(event: string | symbol, listener: (...args: never[]) => void): unknown;
}

/** `Redis` of ioredis: one server, or the master that sentinels name. */
export interface SingleIoredis extends Internals {
  /** The socket of the current connection. */
  readonly stream: { unref?(): unknown; destroy?(): unknown } | undefined;
  connect(): Promise<unknown>;
  duplicate(overrides: object): SingleIoredis;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** ioredis 5.4 and later. */
  ssubscribe?(channel: string): Promise<unknown>;
  sunsubscribe?(channel: string): Promise<unknown>;
}

/** Commands that are sent together. */
interface Pipeline {
  call(name: string, ...args: string[]): Pipeline;
  exec(): Promise<readonly (readonly [error: unknown, reply: unknown])[]>;
}

/** `Cluster` of ioredis. */
export interface ClusterIoredis extends Internals {
  /** For each slot `host:port` of its master, then of its replicas. */
  readonly slots: readonly (readonly string[] | undefined)[];
  nodes(role: 'all' | 'master'): SingleIoredis[];
  /** Reads the slots, and calls back, also with an error. */
  refreshSlotsCache(done: (error?: unknown) => void): void;
  pipeline(): Pipeline;
}
