import { fromIoredis, type Ioredis } from '../../lib/clients/ioredis';
import type { RedisAddress } from '../../support/redis';
import { type ClientKind, onCluster, onSentinel, onServer } from './client-kinds';
import { type IoredisPackage, ioredisOptions } from './ioredis-packages';
import { realRedis } from './redis';

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

const made = (instance: Ioredis) => ({ client: fromIoredis(instance), end: () => instance.disconnect() });

export function ioredisClient({ name, single }: IoredisPackage, options: object = {}): ClientKind {
  return {
    name: `a client of ${name}`,
    server: 'real',
    open: onServer(() => made(single({ ...ofThisRun(), ...options }))),
  };
}

export function ioredisCluster({ name, cluster }: IoredisPackage): ClientKind {
  return {
    name: `a cluster of ${name}`,
    server: 'real',
    open: onCluster(({ masters }) => made(cluster(masters.map(({ address }) => ({ ...address }))))),
  };
}

export function ioredisSentinel({ name, single }: IoredisPackage): ClientKind {
  return {
    name: `a sentinel client of ${name}`,
    server: 'real',
    open: onSentinel((servers) => made(single({ sentinels: [{ ...servers.sentinel }], name: servers.name }))),
  };
}
