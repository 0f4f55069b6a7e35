/** A process that acquires leases, destroys its client without closing the registry, and then has nothing left to do. */

import { createClient } from 'redis';
import { RedisLockRegistry } from '../../lib';
import type { RedisAddress } from '../../support/redis';

async function main(): Promise<void> {
  const client = createClient({ socket: JSON.parse(process.argv[2] as string) as RedisAddress });
  await client.connect();
  const registry = new RedisLockRegistry(client, { registryKey: 'holder', expireAfter: 20_000 });
  await registry.obtain('renewed').lock();
  const fixed = await registry.obtain('fixed').lock({ ttl: 20_000 });
  fixed.signal.addEventListener('abort', () => undefined);
  await (await registry.obtain('unlocked').lock()).unlock();
  client.destroy();
  process.stdout.write('destroyed\n');
}

void main();
