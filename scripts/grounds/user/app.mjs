// An application that somebody bundles: it prints one line of what it saw.
import { createClient } from 'redis';
import { LockTimeoutError, RedisLockRegistry } from 'redis-lock-registry';
import { InMemoryLockRegistry } from 'redis-lock-registry/testing';

const client = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
const seen = [];
for (const lockType of ['spin', 'pub-sub', 'fair']) {
  const options = { registryKey: `app-${lockType}`, lockType, expireAfter: 5_000 };
  const [one, other] = [1, 2].map(() => new RedisLockRegistry(client, options));
  const lease = await one.obtain('key').lock();
  const refused = await other.run('key', () => 'entered', { waitTime: 2_000 }).catch((error) => error);
  const waiting = other.run('key', () => 'passed on');
  await new Promise((resolve) => setTimeout(resolve, 100));
  await lease.unlock();
  seen.push(refused instanceof LockTimeoutError && refused.name, await waiting);
  seen.push(await one.run('key', () => one.run('key', () => 'entered again')));
  // The library knows errors by their classes, whose names a bundler may change.
  seen.push(await one.run('key', (held) => held.eval("return redis.error_reply('OWN')").catch((error) => error.message.includes('OWN'))));
  await Promise.all([one, other].map((registry) => registry.close()));
}
const memory = new InMemoryLockRegistry();
seen.push(await memory.run('key', () => 'in memory'));
await memory.close();
client.destroy();
console.log(seen.join());
