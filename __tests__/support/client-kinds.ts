import { createClient, type RedisClientOptions } from 'redis';
import { createClient as createClient5 } from 'redis5';
import type { RedisClient, RedisLockRegistryOptions } from '../../lib';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { startCluster, type TestCluster } from './cluster';
import { connected } from './connected';
import { createPool } from './pool';
import { createEmbeddedClient, createRealClient, realRedis, type TestClient } from './redis';
import { startSentinel } from './sentinel';

/** Direct access to the Redis of the locks. */
export interface Admin {
  exists(key: string): Promise<number>;
  pTTL(key: string): Promise<number>;
  set(key: string, value: string, options?: { PX: number }): Promise<unknown>;
  del(key: string): Promise<unknown>;
  /** SCRIPT FLUSH, on every server. */
  forgetScripts(): Promise<unknown>;
}

/** Two clients of one kind, as of two processes, and an independent connection. */
export interface ContractClients {
  readonly clients: readonly [RedisClient, RedisClient];
  readonly admin: Admin;
  close(): Promise<void>;
}

export interface ClientKind {
  readonly name: string;
  readonly server: 'real' | 'embedded';
  /** Makes a registry on one of the clients; by default a `RedisLockRegistry`. */
  registry?(client: RedisClient, options: RedisLockRegistryOptions): BackedLockRegistry;
  /** Its server has no Lua. */
  readonly hasNoScripts?: boolean;
  /** It has several connections: commands that are sent one after the other may reach Redis in another order. */
  readonly mayReorder?: boolean;
  /**
   * How many requests a caller has made when it waits for a lock that is held: by default two, an attempt that was
   * refused and what followed it.
   */
  readonly requestsOfWaiter?: number;
  open(): Promise<ContractClients>;
}

export const redis6Client: ClientKind = {
  name: 'a redis 6 client',
  server: 'real',
  open: () => clientsOf(() => createRealClient(), createRealClient()),
};

export const embeddedClient: ClientKind = {
  name: 'a redis 6 client on js-redis-server',
  server: 'embedded',
  open: () => clientsOf(() => createEmbeddedClient(), createEmbeddedClient()),
};

export const redis6Pool: ClientKind = {
  name: 'a redis 6 pool',
  server: 'real',
  mayReorder: true,
  open: () => clientsOf(() => connected(createPool(realRedis, { minimum: 2, maximum: 8 })), createRealClient()),
};

export const redis5Client: ClientKind = {
  name: 'a redis 5 client',
  server: 'real',
  open: () => clientsOf(() => connected(createClient5(plainly(realRedis))), createRealClient()),
};

export const redis6Cluster: ClientKind = {
  name: 'a redis 6 cluster of three masters',
  server: 'real',
  async open() {
    const cluster = await startCluster();
    const [first, second, admin] = await Promise.all([cluster.connect(), cluster.connect(), cluster.connect()]);
    return {
      clients: [first, second],
      admin: clusterAdminOf(admin),
      async close() {
        for (const client of [first, second, admin]) client.destroy();
        await cluster.stop();
      },
    };
  },
};

export const redis6Sentinel: ClientKind = {
  name: 'a redis 6 sentinel',
  server: 'real',
  async open() {
    const sentinel = await startSentinel();
    const [first, second] = await Promise.all([sentinel.connect(), sentinel.connect()]);
    const admin: TestClient = createClient({ socket: sentinel.master });
    await connected(admin);
    return {
      clients: [first, second],
      admin: adminOf(admin),
      async close() {
        for (const client of [first, second, admin]) client.destroy();
        await sentinel.stop();
      },
    };
  },
};

/** The option types of redis 5 and 6 differ, but not in the options used here. */
function plainly(options: RedisClientOptions | undefined): Parameters<typeof createClient5>[0] {
  return options as Parameters<typeof createClient5>[0];
}

async function clientsOf(
  create: () => Promise<RedisClient & { destroy(): void }>,
  connecting: Promise<TestClient>,
): Promise<ContractClients> {
  const [first, second, admin] = await Promise.all([create(), create(), connecting]);
  return {
    clients: [first, second],
    admin: adminOf(admin),
    async close() {
      for (const client of [first, second, admin]) client.destroy();
    },
  };
}

export function adminOf(client: TestClient): Admin {
  return {
    exists: (key) => client.exists(key),
    pTTL: (key) => client.pTTL(key),
    set: (key, value, options) => client.set(key, value, options),
    del: (key) => client.del(key),
    forgetScripts: () => client.scriptFlush(),
  };
}

export function clusterAdminOf(cluster: TestCluster): Admin {
  return {
    exists: (key) => cluster.exists(key),
    pTTL: (key) => cluster.pTTL(key),
    set: (key, value, options) => cluster.set(key, value, options),
    del: (key) => cluster.del(key),
    forgetScripts: () =>
      Promise.all(cluster.masters.map(async (master) => (await cluster.nodeClient(master)).scriptFlush())),
  };
}

/** An independent plain client for an oracle. */
export function createOracleClient(kind: ClientKind): Promise<TestClient> {
  return kind.server === 'real' ? createRealClient() : createEmbeddedClient();
}
