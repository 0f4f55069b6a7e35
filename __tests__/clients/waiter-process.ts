/** Waits once for a lock by notification, and then closes its instance, but not its registry. */

import { Redis } from 'ioredis';
import { RedisLockRegistry } from '../../lib';
import { fromIoredis } from '../../lib/clients/ioredis';
import type { RedisAddress } from '../../support/redis';
import { ioredisOptions } from '../support/ioredis-packages';

async function main(): Promise<void> {
  const redis = new Redis(ioredisOptions(JSON.parse(process.env.TEST_ADDRESS as string) as RedisAddress));
  await redis.set('locks:key', 'another', 'PX', 500);
  const registry = new RedisLockRegistry(fromIoredis(redis), { registryKey: 'locks', lockType: 'pub-sub' });
  await registry.run('key', () => undefined);
  const listening = (await redis.client('LIST', 'TYPE', 'PUBSUB')) as string;
  if (listening === '') throw new Error('It did not listen');
  redis.disconnect();
  console.log('closed');
}

void main();
