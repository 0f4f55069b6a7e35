import type { Redis } from 'ioredis';
import type { Address } from './candidate';

// Imported when they are needed: every process of the bench is to start soon.

/** A client as an application makes it, all options at their defaults. */
export async function nodeRedis(address: Address) {
  const { createClient } = await import('redis');
  const client = createClient({ socket: { ...address } });
  client.on('error', () => {}); // the commands that it concerns reject too
  await client.connect();
  return client;
}

/** The floor: without the timeout of each command, which costs several times what the command does. */
export async function rawNodeRedis(address: Address) {
  const client = await nodeRedis(address);
  return Object.assign(client.withCommandOptions({ timeout: 0 }), { tap: () => client.duplicate().connect() });
}

export type RawNodeRedis = Awaited<ReturnType<typeof rawNodeRedis>>;

export async function ioRedis({ host, port }: Address): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const client = new Redis(port, host, { lazyConnect: true });
  await client.connect();
  return client;
}
