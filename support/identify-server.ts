import { createClient } from 'redis';

/** Name and version of the server that REDIS_URL names, for people. Throws where nothing answers there. */
export async function identifyServer(url: string): Promise<string> {
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: 5_000 } });
  client.on('error', () => {}); // connect() rejects with it
  try {
    await client.connect();
    await client.ping();
  } catch (error) {
    client.destroy();
    throw new Error(`No Redis answers at REDIS_URL: ${(error as Error).message}`, { cause: error });
  }
  try {
    const info = await client.info('server');
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    const redis = /^redis_version:(\S+)/m.exec(info)?.[1];
    if (valkey !== undefined) return `valkey-server ${valkey}`;
    return redis === undefined ? 'a server that does not say its version' : `redis-server ${redis}`;
  } catch (error) {
    // It answers, and does not have INFO, or not for this user.
    return `a server that does not say its version (${(error as Error).message})`;
  } finally {
    client.destroy();
  }
}
