/** Waits once for a lock by notification, is handed over, and then closes its client, but not its registry. */

import { subscribe } from 'node:diagnostics_channel';
import { createClient } from 'redis';
import { RedisLockRegistry } from '../../lib';

async function main(): Promise<void> {
  const client = createClient({ socket: JSON.parse(process.env.TEST_ADDRESS as string) });
  await client.on('error', () => {}).connect();
  await client.set('locks:key', 'another', { PX: 300 });
  const registry = new RedisLockRegistry(client, { registryKey: 'locks', lockType: 'pub-sub' });
  await registry.run('key', () => undefined);
  subscribe('node-redis:connection:handoff', () => {
    client.destroy();
    console.log('closed');
  });
  console.log('waited');
}

void main();
