const { createClient } = require('redis');
const { RedisLockRegistry } = require('redis-lock-registry');

async function main() {
  const client = await createClient({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' })
    .on('error', console.error)
    .connect();
  const registry = new RedisLockRegistry(client, { registryKey: 'shop' });

  await registry.run('order:42', () => console.log('has the lock'), { waitTime: 5_000 });

  await registry.close();
  client.destroy();
}

main();
