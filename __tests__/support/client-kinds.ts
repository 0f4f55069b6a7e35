import { createClient as createClient5 } from 'redis5';
import type { RedisClient, RedisLockRegistryOptions } from '../../lib';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { startCluster, type TestCluster } from './cluster';
import { connected } from './connected';
import { Node } from './node';
import { createPool } from './pool';
import { createEmbeddedClient, createRealClient, realRedis, type TestClient } from './redis';
import { startSentinel } from './sentinel';

/** Direct access to the Redis of the locks. */
export interface Admin {
  exists(key: string): Promise<number>;
  pTTL(key: string): Promise<number>;
  set(key: string, value: string, options?: { PX: number }): Promise<unknown>;
  del(key: string): Promise<unknown>;
  /** Any command about this key: its words may be bytes that are no text. Absent where no server is asked. */
  send?(key: string, words: (string | Buffer)[]): Promise<unknown>;
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

/** A client, and what ends it. */
interface Made {
  readonly client: RedisClient;
  end(): unknown;
}

async function clientsOf(make: () => Made | Promise<Made>, admin: Admin, end: () => unknown): Promise<ContractClients> {
  const made = await Promise.all([make(), make()]);
  return {
    clients: [made[0].client, made[1].client],
    admin,
    async close() {
      for (const one of made) one.end();
      await end();
    },
  };
}

/** Clients of the server of this run. */
export function onServer(make: () => Made | Promise<Made>, connect = createRealClient) {
  return async (): Promise<ContractClients> => {
    const admin = await connect();
    return clientsOf(make, adminOf(admin), () => admin.destroy());
  };
}

/** Clients of servers of their own. */
function onOwn<Servers extends { stop(): unknown }>(
  start: () => Promise<Servers>,
  adminOfThem: (servers: Servers) => Promise<Admin>,
) {
  return (make: (servers: Servers) => Made | Promise<Made>) => async (): Promise<ContractClients> => {
    const servers = await start();
    return clientsOf(
      () => make(servers),
      await adminOfThem(servers),
      () => servers.stop(),
    );
  };
}

/** One server, on TCP. */
export const onNode = onOwn(
  () => Node.start(),
  async (node) => adminOf(await node.admin()),
);

export const onCluster = onOwn(
  () => startCluster(),
  async (servers) => clusterAdminOf(await servers.connect()),
);

export const onSentinel = onOwn(
  () => startSentinel(),
  async ({ nodes }) => adminOf(await (nodes[0] as Node).admin()),
);

/** A client of node-redis. */
async function ofNodeRedis(connecting: Promise<RedisClient & { destroy(): unknown }>): Promise<Made> {
  const client = await connecting;
  return { client, end: () => client.destroy() };
}

export const redis6Client: ClientKind = {
  name: 'a redis 6 client',
  server: 'real',
  open: onServer(() => ofNodeRedis(createRealClient())),
};

export const embeddedClient: ClientKind = {
  name: 'a redis 6 client on js-redis-server',
  server: 'embedded',
  open: onServer(() => ofNodeRedis(createEmbeddedClient()), createEmbeddedClient),
};

export const redis6Pool: ClientKind = {
  name: 'a redis 6 pool',
  server: 'real',
  mayReorder: true,
  open: onServer(() => ofNodeRedis(connected(createPool(realRedis, { minimum: 2, maximum: 8 })))),
};

export const redis5Client: ClientKind = {
  name: 'a redis 5 client',
  server: 'real',
  // The option types of redis 5 and 6 differ, but not in the options used here.
  open: onServer(() => ofNodeRedis(connected(createClient5(realRedis as Parameters<typeof createClient5>[0])))),
};

export const redis6Cluster: ClientKind = {
  name: 'a redis 6 cluster of three masters',
  server: 'real',
  open: onCluster((servers) => ofNodeRedis(servers.connect())),
};

export const redis6Sentinel: ClientKind = {
  name: 'a redis 6 sentinel',
  server: 'real',
  open: onSentinel((servers) => ofNodeRedis(servers.connect())),
};

export function adminOf(client: TestClient): Admin {
  return {
    exists: (key) => client.exists(key),
    pTTL: (key) => client.pTTL(key),
    set: (key, value, options) => client.set(key, value, options),
    del: (key) => client.del(key),
    send: (_key, words) => client.sendCommand(words),
    forgetScripts: () => client.scriptFlush(),
  };
}

function clusterAdminOf(cluster: TestCluster): Admin {
  return {
    exists: (key) => cluster.exists(key),
    pTTL: (key) => cluster.pTTL(key),
    set: (key, value, options) => cluster.set(key, value, options),
    del: (key) => cluster.del(key),
    send: (key, words) => cluster.sendCommand(key, false, words),
    forgetScripts: () =>
      Promise.all(cluster.masters.map(async (master) => (await cluster.nodeClient(master)).scriptFlush())),
  };
}

/** An independent plain client for an oracle. */
export function createOracleClient(kind: ClientKind): Promise<TestClient> {
  return kind.server === 'real' ? createRealClient() : createEmbeddedClient();
}
