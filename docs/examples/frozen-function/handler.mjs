import { createClient } from 'redis';
import { LockTimeoutError, RedisLockRegistry } from 'redis-lock-registry';

// Once for each instance of the function, and used again after each thaw.
const client = createClient({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }).on('error', () => undefined);
const connected = client.connect();
const registry = new RedisLockRegistry(client, { registryKey: 'billing', expireAfter: 2_000 });

export async function handler({ month, forgetToUnlock }) {
  await connected;
  if (forgetToUnlock) return await takeAndForget(month);
  try {
    const total = await registry.run(`month:${month}`, async () => 99, { waitTime: 5_000 });
    return { statusCode: 200, total };
  } catch (error) {
    if (error instanceof LockTimeoutError) return { statusCode: 409 };
    throw error;
  }
}

// What not to do: a lease that outlives the call. It is lost while the function is frozen, and says so after the thaw.
let forgotten;

async function takeAndForget(month) {
  const lease = (forgotten ??= await registry.obtain(`month:${month}`).lock());
  return { statusCode: 200, remaining: lease.remaining };
}
