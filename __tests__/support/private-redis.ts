import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, jest } from '@jest/globals';
import { createClient, type RedisClientOptions } from 'redis';
import type { RedisClient } from '../../lib';
import { FaultyProxy } from '../../support/proxy';
import { type RedisAddress, type RedisServer, startRedis } from '../../support/redis';
import { findRedisBinary } from '../../support/redis-binary';
import { createPool } from './pool';
import type { TestClient } from './redis';
import { until } from './until';

/** `describe` for tests that freeze, kill or starve their own server; skipped where none can be started. */
export const describePrivate = findRedisBinary() ? describe : describe.skip;

export type ClientOptions = Omit<RedisClientOptions, 'socket'> & { reconnectStrategy?: number | false };

/** What all kinds of client have in common. */
export type AnyClient = RedisClient & { destroy(): void; connect(): Promise<unknown> };

const ended: (() => Promise<void> | void)[] = [];

/** Registers a cleanup for the end of the file's tests; cleanups run in reverse order. */
export function atTheEnd(end: () => Promise<void> | void): void {
  ended.push(end);
}

afterAll(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** What is started for the file's tests, and stopped at their end. */
export async function untilTheEnd<T extends { stop(): Promise<void> | void }>(starting: Promise<T>): Promise<T> {
  const running = await starting;
  atTheEnd(() => running.stop());
  return running;
}

/** Servers that are started for the tests of the surrounding `describe`, and stopped at the end of the file's tests. */
export function installed<Servers extends { stop(): Promise<void> }>(start: () => Promise<Servers>): () => Servers {
  let servers: Servers | undefined;
  beforeAll(async () => {
    servers = await untilTheEnd(start());
  });
  return () => started(servers);
}

/** A private server that can be killed and started again with the same address and files. */
export class PrivateRedis {
  readonly #args: readonly string[];
  #dir = '';
  #server: RedisServer | undefined;
  #admin: TestClient | undefined;
  #killed = false;

  /** Starts a server, which is killed at the end of the file's tests. */
  static async start(...args: string[]): Promise<PrivateRedis> {
    const redis = new PrivateRedis(args);
    await redis.#start();
    return redis;
  }

  /** Registers the hook that starts a server, with `admin`, for the tests of the surrounding `describe`. */
  static install(...args: string[]): PrivateRedis {
    const redis = new PrivateRedis(args);
    beforeAll(async () => {
      await redis.#start();
      redis.#admin = await redis.connect();
    });
    return redis;
  }

  private constructor(args: readonly string[]) {
    this.#args = args;
  }

  async #start(): Promise<void> {
    this.#dir = await mkdtemp(join(tmpdir(), 'redis-'));
    this.#server = await startRedis({ dir: this.#dir, args: this.#args });
    atTheEnd(async () => {
      await this.kill();
      await rm(this.#dir, { recursive: true, force: true });
    });
  }

  get address(): RedisAddress {
    return started(this.#server).address;
  }

  get dir(): string {
    return this.#dir;
  }

  /** The test's own connection to an installed server. */
  get admin(): TestClient {
    return started(this.#admin);
  }

  /** SIGSTOP: the server keeps its connections and its data, and does nothing. */
  freeze(): void {
    started(this.#server).kill('SIGSTOP');
  }

  thaw(): void {
    started(this.#server).kill('SIGCONT');
  }

  /** Sends SIGKILL; resolves when the process has ended. */
  async kill(): Promise<void> {
    const server = started(this.#server);
    // `stop` fails between the end of the process and the notification of its parent.
    const isGone = () =>
      server.stop().then(
        () => true,
        () => false,
      );
    if (!this.#killed) server.kill('SIGKILL');
    this.#killed = true;
    await until(isGone);
  }

  /** Starts it again after `kill`, on the same address, with the data of its files only. */
  async revive(...args: string[]): Promise<void> {
    this.#server = await startRedis({ dir: this.#dir, args: [...this.#args, ...args] });
    this.#killed = false;
  }

  /** A proxy in front of the server, stopped at the end of the file's tests. */
  async proxy(): Promise<FaultyProxy> {
    return untilTheEnd(FaultyProxy.start(this.address));
  }

  /** A connected plain client, destroyed at the end of the file's tests. */
  connect(options: ClientOptions = {}): Promise<TestClient> {
    return connectTo(this.address, options);
  }
}

/** Hooks start the server: a part of it that is used while tests are being defined is not there yet. */
function started<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('The server has not been started yet');
  return part;
}

/** A connected plain client, destroyed at the end of the file's tests. It reconnects every few ms. */
export async function connectTo(
  address: RedisAddress,
  { reconnectStrategy = 5, ...options }: ClientOptions = {},
): Promise<TestClient> {
  const client: TestClient = createClient({ ...options, socket: { ...address, reconnectStrategy } });
  await quiet(client).connect();
  return client;
}

/**
 * The kinds of client for a single Redis; each fails in its own way. Most tests need one of them: the others' packages are
 * loaded by the tests that do.
 */
export const clientKinds = {
  'a client': connectTo,
  'a pool': async (address: RedisAddress): Promise<AnyClient> => {
    // `destroy` misses a client that the pool is just making: it would try to reconnect for ever.
    let isOver = false;
    const reconnectStrategy = () => (isOver ? new Error('The tests are over') : 5);
    const pool = createPool({ socket: { ...address, reconnectStrategy } }, { minimum: 20, maximum: 40 });
    atTheEnd(() => {
      isOver = true;
    });
    await quiet(pool).connect();
    return pool;
  },
  'a client of redis 5': async (address: RedisAddress): Promise<AnyClient> => {
    const { createClient: createClient5 } = jest.requireActual<typeof import('redis5')>('redis5');
    const client = createClient5({ socket: { ...address, reconnectStrategy: 5 } });
    await quiet(client).connect();
    return client;
  },
  'a client of ioredis': async (address: RedisAddress): Promise<AnyClient> => {
    const { ioredisOptions, packageNamed } =
      jest.requireActual<typeof import('./ioredis-packages')>('./ioredis-packages');
    const { fromIoredis } = jest.requireActual<typeof import('../../lib/clients/ioredis')>('../../lib/clients/ioredis');
    const redis = packageNamed('ioredis 5').single({ ...ioredisOptions(address), retryStrategy: () => 5 });
    atTheEnd(() => redis.disconnect());
    await until(() => redis.status === 'ready');
    return Object.assign(fromIoredis(redis), {
      destroy: () => redis.disconnect(),
      connect: () => (redis as unknown as { connect(): Promise<unknown> }).connect(),
    });
  },
} satisfies Record<string, (address: RedisAddress) => Promise<AnyClient>>;

export type ClientKind = keyof typeof clientKinds;

/** By default ioredis sends again by itself what was not answered: a lost reply is no error then. */
export function repeatsByItself(kind: ClientKind): boolean {
  return kind === 'a client of ioredis';
}

export const CLIENT_KINDS = Object.keys(clientKinds) as ClientKind[];

/** Without an error listener, a connection error would end the process. */
function quiet<T extends { on(event: 'error', listener: () => void): unknown; destroy(): unknown; isOpen: boolean }>(
  client: T,
): T {
  client.on('error', () => {});
  atTheEnd(() => {
    if (client.isOpen) client.destroy();
  });
  return client;
}
