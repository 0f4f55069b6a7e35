import type { Redis } from 'ioredis';
import type { Address } from './candidate';

// Imported on demand, so that a worker process loads only the client it uses.

/** A client with default options. */
export async function nodeRedis(address: Address) {
  const { createClient } = await import('redis');
  const client = createClient({ socket: { ...address } });
  client.on('error', () => {}); // the affected commands reject too
  await client.connect();
  return client;
}

/** For the floors: without command timeouts, which cost several times as much as the command itself. */
export async function rawNodeRedis(address: Address) {
  const client = await nodeRedis(address);
  return Object.assign(client.withCommandOptions({ timeout: 0 }), {
    newSubscriber: () => client.duplicate().connect(),
  });
}

export type RawNodeRedis = Awaited<ReturnType<typeof rawNodeRedis>>;

export async function ioRedis({ host, port }: Address): Promise<Redis> {
  const { Redis } = await import('ioredis');
  const client = new Redis(port, host, { lazyConnect: true });
  await client.connect();
  return client;
}
