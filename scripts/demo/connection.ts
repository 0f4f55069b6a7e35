import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';

const CONNECT_TIMEOUT = 4_000; // ms

export type Redis = ReturnType<typeof newClient>;

/** A connection without reconnects: a demo ends when it loses its Redis. */
export async function connect(url: string): Promise<Redis> {
  const client = newClient(url);
  client.on('error', () => {}); // the affected commands reject too
  const timeout = sleep(CONNECT_TIMEOUT, undefined, { ref: false }).then(() => {
    throw new Error(`no answer within ${CONNECT_TIMEOUT / 1000} s`);
  });
  try {
    await Promise.race([client.connect(), timeout]);
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

function newClient(url: string) {
  return createClient({ url, socket: { reconnectStrategy: false } });
}
