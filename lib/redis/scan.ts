import { Timer } from '../internal/clock';
import type { RedisClient } from './client';
import { isClusterClient } from './cluster-client';
import { CommandTimeoutError } from './failure';

/** node-redis: what SCAN needs. */
interface ScanningClient {
  scan(cursor: string, options: { MATCH: string; COUNT: number }): Promise<{ cursor: unknown; keys: unknown[] }>;
}

export function canScan(client: RedisClient): boolean {
  return isClusterClient(client) || isScanning(client);
}

/**
 * Pages of the keys that match a glob, on all servers. A key may come more than once. `timeout` in ms, for each page.
 */
export async function* scan(
  client: RedisClient,
  pattern: string,
  count: number,
  timeout: number,
): AsyncGenerator<string[], void, undefined> {
  for (const server of await serversOf(client)) {
    let cursor = '0';
    do {
      const page = await answered(server.scan(cursor, { MATCH: pattern, COUNT: count }), timeout);
      cursor = String(page.cursor);
      yield page.keys.map(String);
    } while (cursor !== '0');
  }
}

/** The glob that matches nothing but this text. */
export function literally(text: string): string {
  return text.replace(/[\\*?[\]^-]/g, '\\$&');
}

async function serversOf(client: RedisClient): Promise<ScanningClient[]> {
  // SCAN is about one server.
  if (isClusterClient<ScanningClient>(client)) {
    return Promise.all(client.masters.map((master) => client.nodeClient(master)));
  }
  return isScanning(client) ? [client] : [];
}

function answered<T>(reply: Promise<T>, timeout: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = new Timer(timeout, () => reject(new CommandTimeoutError(timeout, reply)));
    void reply.then(resolve, reject).finally(() => timer.cancel());
  });
}

function isScanning(client: object): client is ScanningClient {
  return typeof (client as Partial<ScanningClient>).scan === 'function';
}
