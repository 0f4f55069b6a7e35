import { createClient } from 'redis';
import { RedisLockRegistry } from 'redis-lock-registry';

const client = await createClient({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' })
  .on('error', console.error)
  .connect();
const registry = new RedisLockRegistry(client, { registryKey: 'shop' });

const lease = await registry.obtain('order:42').lock({ waitTime: 5_000 });
try {
  console.log('has the lock');
} finally {
  await lease.unlock();
}

await registry.close();
client.destroy();
