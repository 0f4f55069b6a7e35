/**
 * Compiled by `npm run typecheck`, never run: which instances `fromIoredis` takes without casts.
 */

import { Redis } from 'ioredis';
import * as ioredis6 from 'ioredis6';
import * as iovalkey from 'iovalkey';
import { RedisLockRegistry } from '../../lib';
import { fromIoredis } from '../../lib/ioredis';

const options = { registryKey: 'orders', lockType: 'fair' } as const;
const nodes = [{ host: 'localhost', port: 7000 }];
const sentinels = { sentinels: [{ host: 'localhost', port: 26_379 }], name: 'locks' };

export const accepted = [
  new RedisLockRegistry(fromIoredis(new Redis()), options),
  new RedisLockRegistry(fromIoredis(new Redis('redis://localhost:6379', { enableAutoPipelining: true })), options),
  new RedisLockRegistry(fromIoredis(new Redis(sentinels)), options),
  new RedisLockRegistry(fromIoredis(new Redis.Cluster(nodes)), options),
  new RedisLockRegistry(fromIoredis(new ioredis6.Redis()), options),
  new RedisLockRegistry(fromIoredis(new ioredis6.Redis({ replyMapping: 'resp3' })), options),
  new RedisLockRegistry(fromIoredis(new ioredis6.Redis(sentinels)), options),
  new RedisLockRegistry(fromIoredis(new ioredis6.Cluster(nodes)), options),
  new RedisLockRegistry(fromIoredis(new iovalkey.Redis()), options),
  new RedisLockRegistry(fromIoredis(new iovalkey.Cluster(nodes)), options),
];

export function refused() {
  // @ts-expect-error: not without the adapter
  new RedisLockRegistry(new Redis(), options);
  // @ts-expect-error: an address is not a client
  fromIoredis('redis://localhost:6379');
  // @ts-expect-error: nothing of ioredis
  fromIoredis({ evalsha: async () => 1 });
}
