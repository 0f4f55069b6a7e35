import type { RedisSubscriber } from '../../api/options';
import { inOneLine } from '../../internal/validation';
import type { AdaptedKind, RedisClient } from '../../redis/client';
import { adapterOf } from '../common/adapter-of';
import { ClusterClient } from './clustered';
import type { ClusterIoredis, Ioredis, IoredisOptions, SingleIoredis } from './instance';
import { SingleClient } from './single';

export type { Ioredis } from './instance';

const KIND: AdaptedKind = {
  what: 'an instance of ioredis or iovalkey, Redis or Cluster',
  make: 'new Redis(url)',
  entryPoint: 'ioredis',
  members: {
    call: 'function',
    disconnect: 'function',
    duplicate: 'function',
    evalsha: 'function',
    options: 'object',
    status: 'string',
  },
};

/**
 * Makes the client that `RedisLockRegistry` needs of an instance of ioredis (5 or 6) or iovalkey: `Redis` (one server,
 * or the master that sentinels name) or `Cluster`. Pub/sub and `minReplicas` get connections of their own, with the
 * options of the instance. The instance stays the caller's: it is neither changed nor closed.
 * @throws TypeError when it is no such instance, or has the option `keyPrefix`, `stringNumbers` or `monitor`; or
 * `enableAutoPipelining` together with `autoResendUnfulfilledCommands: false`.
 * @example
 * const registry = new RedisLockRegistry(fromIoredis(redis), { registryKey: 'orders', lockType: 'pub-sub' });
 */
export function fromIoredis(redis: Ioredis): RedisClient & Partial<RedisSubscriber> {
  return adapterOf(redis, KIND, (instance: SingleIoredis | ClusterIoredis) => {
    const { options } = instance;
    refuse({ ...options.redisOptions, ...options });
    if (instance.isCluster) return new ClusterClient(instance as ClusterIoredis);
    refuseStuckPipelines(options);
    return new SingleClient(instance as SingleIoredis);
  });
}

/** Throws for what the library cannot work with. */
function refuse({ keyPrefix, stringNumbers, monitor }: IoredisOptions): void {
  if (keyPrefix !== undefined && keyPrefix !== '') {
    const why = 'ioredis would put it before the keys, but not before the channels of a lock. Use `registryKey`';
    const expectation = 'Expected an instance of ioredis without the option keyPrefix';
    throw new TypeError(inOneLine(`${expectation}, got "${keyPrefix}": ${why}`));
  }
  if (stringNumbers === true) {
    throw new TypeError('Expected an instance of ioredis without the option stringNumbers: scripts return numbers');
  }
  if (monitor === true)
    throw new TypeError('Expected an instance of ioredis that sends commands, got one that monitors');
}

/**
 * With both options ioredis never settles a pipeline whose connection was lost, and sends no other one before it has
 * settled: no command of the instance is answered any more. A node of a cluster is a new instance for each connection.
 */
function refuseStuckPipelines({ enableAutoPipelining, autoResendUnfulfilledCommands }: IoredisOptions): void {
  if (enableAutoPipelining !== true || autoResendUnfulfilledCommands !== false) return;
  const both = 'enableAutoPipelining and autoResendUnfulfilledCommands: false';
  throw new TypeError(`Expected an instance of ioredis with one of ${both}, got both: it could hang for good`);
}
