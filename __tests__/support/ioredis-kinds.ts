import { createClient } from 'redis';
import { fromIoredis, type Ioredis } from '../../lib/ioredis';
import type { RedisAddress } from '../../support/redis';
import { type Admin, adminOf, type ClientKind, type ContractClients, clusterAdminOf } from './client-kinds';
import { startCluster } from './cluster';
import { connected } from './connected';
import { type IoredisPackage, ioredisOptions } from './ioredis-packages';
import { createRealClient, realRedis, type TestClient } from './redis';
import { startSentinel } from './sentinel';

/** As tests of the run reach their server. */
function ofThisRun(): object {
  const { socket, username, password, database } = realRedis ?? {};
  return {
    ...ioredisOptions(socket as RedisAddress),
    ...(username && { username }),
    ...(password && { password }),
    ...(database && { db: database }),
  };
}

/** Two clients on two instances, which are disconnected at the end. `end` ends what the admin and the servers are. */
function clientsOn(make: () => Ioredis, admin: Admin, end: () => unknown): ContractClients {
  const instances = [make(), make()] as const;
  return {
    clients: [fromIoredis(instances[0]), fromIoredis(instances[1])],
    admin,
    async close() {
      for (const instance of instances) instance.disconnect();
      await end();
    },
  };
}

export function ioredisClient({ name, single }: IoredisPackage, options: object = {}): ClientKind {
  return {
    name: `a client of ${name}`,
    server: 'real',
    async open() {
      const admin = await createRealClient();
      return clientsOn(
        () => single({ ...ofThisRun(), ...options }),
        adminOf(admin),
        () => admin.destroy(),
      );
    },
  };
}

export function ioredisCluster({ name, cluster }: IoredisPackage): ClientKind {
  return {
    name: `a cluster of ${name}`,
    server: 'real',
    async open() {
      const servers = await startCluster();
      const nodes = servers.masters.map(({ address }) => ({ ...address }));
      const admin = await servers.connect();
      return clientsOn(
        () => cluster(nodes),
        clusterAdminOf(admin),
        () => {
          admin.destroy();
          return servers.stop();
        },
      );
    },
  };
}

export function ioredisSentinel({ name, single }: IoredisPackage): ClientKind {
  return {
    name: `a sentinel client of ${name}`,
    server: 'real',
    async open() {
      const servers = await startSentinel();
      const admin: TestClient = createClient({ socket: servers.master });
      await connected(admin);
      return clientsOn(
        () => single({ sentinels: [{ ...servers.sentinel }], name: servers.name }),
        adminOf(admin),
        () => {
          admin.destroy();
          return servers.stop();
        },
      );
    },
  };
}
