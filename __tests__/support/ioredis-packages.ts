import * as ioredis5 from 'ioredis';
import * as ioredis6 from 'ioredis6';
import * as iovalkey from 'iovalkey';
import type { RedisClientOptions } from 'redis';
import type { Ioredis } from '../../lib/clients/ioredis';
import type { RedisAddress } from '../../support/redis';

/** What makes the clients of one package. Their option types differ, but not in the options used here. */
export interface IoredisPackage {
  readonly name: string;
  single(options: object): Ioredis;
  cluster(nodes: { host: string; port: number }[], options?: object): Ioredis;
}

export const packages: readonly IoredisPackage[] = [
  {
    name: 'ioredis 5',
    single: (options) => quiet(new ioredis5.Redis(options)),
    cluster: (nodes, options) => quiet(new ioredis5.Cluster(nodes, options)),
  },
  {
    name: 'ioredis 6',
    single: (options) => quiet(new ioredis6.Redis(options)),
    cluster: (nodes, options) => quiet(new ioredis6.Cluster(nodes, options)),
  },
  {
    name: 'iovalkey',
    single: (options) => quiet(new iovalkey.Redis(options)),
    cluster: (nodes, options) => quiet(new iovalkey.Cluster(nodes, options)),
  },
];

/** Without a listener, a cut connection would be written to the console. */
function quiet<T extends Ioredis>(redis: T): T {
  redis.on('error', () => {});
  return redis;
}

/** An address, as ioredis takes it. */
export function ioredisOptions(address: RedisAddress | NonNullable<RedisClientOptions['socket']>): object {
  if ('path' in address && address.path !== undefined) return { path: address.path };
  const { host, port } = address as { host: string; port: number };
  return { host, port, ...('tls' in address && address.tls === true ? { tls: {} } : {}) };
}

export function packageNamed(name: string): IoredisPackage {
  return packages.find((one) => one.name === name) as IoredisPackage;
}
