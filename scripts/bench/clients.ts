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

export async function ioRedis({ host, port }: Address) {
  const { Redis } = await import('ioredis');
  const client = new Redis(port, host, { lazyConnect: true });
  client.on('error', () => {}); // as above
  await client.connect();
  return client;
}
