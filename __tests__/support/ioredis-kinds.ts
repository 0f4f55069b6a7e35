import { createClient } from 'redis';
import { fromIoredis } from '../../lib/ioredis';
import type { RedisAddress } from '../../scripts/redis';
import { adminOf, type ClientKind, clusterAdminOf } from './client-kinds';
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

export function ioredisClient({ name, single }: IoredisPackage, options: object = {}): ClientKind {
  return {
    name: `a client of ${name}`,
    server: 'real',
    async open() {
      const instances = [single({ ...ofThisRun(), ...options }), single({ ...ofThisRun(), ...options })] as const;
      const admin = await createRealClient();
      return {
        clients: [fromIoredis(instances[0]), fromIoredis(instances[1])],
        admin: adminOf(admin),
        async close() {
          for (const instance of instances) instance.disconnect();
          admin.destroy();
        },
      };
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
      const instances = [cluster(nodes), cluster(nodes)] as const;
      const admin = await servers.connect();
      return {
        clients: [fromIoredis(instances[0]), fromIoredis(instances[1])],
        admin: clusterAdminOf(admin),
        async close() {
          for (const instance of instances) instance.disconnect();
          admin.destroy();
          await servers.stop();
        },
      };
    },
  };
}

export function ioredisSentinel({ name, single }: IoredisPackage): ClientKind {
  return {
    name: `a sentinel client of ${name}`,
    server: 'real',
    async open() {
      const servers = await startSentinel();
      const options = { sentinels: [{ ...servers.sentinel }], name: servers.name };
      const instances = [single(options), single(options)] as const;
      const admin: TestClient = createClient({ socket: servers.master });
      await connected(admin);
      return {
        clients: [fromIoredis(instances[0]), fromIoredis(instances[1])],
        admin: adminOf(admin),
        async close() {
          for (const instance of instances) instance.disconnect();
          admin.destroy();
          await servers.stop();
        },
      };
    },
  };
}
