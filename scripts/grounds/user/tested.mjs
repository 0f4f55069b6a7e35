// What a user tests: two registries in memory and two over Redis wait for each other, and are closed.
import { createClient } from 'redis';
import { RedisLockRegistry } from 'redis-lock-registry';
import { InMemoryLockRegistry, InMemoryLocks } from 'redis-lock-registry/testing';

async function passOn(one, other) {
  const lease = await one.obtain('key').lock();
  const refused = await other.obtain('key').lock({ waitTime: 1_000 }).then(() => 'entered', (error) => error.name);
  const waiting = other.run('key', () => 'passed on');
  await new Promise((resolve) => setTimeout(resolve, 50));
  await lease.unlock();
  const seen = [refused, await waiting].join();
  await Promise.all([one, other].map((registry) => registry.close()));
  return seen;
}

export const EXPECTED = 'LockTimeoutError,passed on';

export const inMemory = () => {
  const locks = new InMemoryLocks();
  return passOn(new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks }));
};

export async function onRedis(lockType) {
  const client = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
  const options = { registryKey: `tested-${lockType}`, lockType };
  const seen = await passOn(new RedisLockRegistry(client, options), new RedisLockRegistry(client, options));
  await client.close();
  return seen;
}
