import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';

const PATIENCE = 4_000; // ms

export type Redis = ReturnType<typeof newClient>;

/** A connection that never comes back once it is lost: a demo without its Redis ends. */
export async function connect(url: string): Promise<Redis> {
  const client = newClient(url);
  client.on('error', () => {}); // the commands that it concerns reject too
  const silence = sleep(PATIENCE, undefined, { ref: false }).then(() => {
    throw new Error(`no answer within ${PATIENCE / 1000} s`);
  });
  try {
    await Promise.race([client.connect(), silence]);
    return client;
  } catch (error) {
    client.destroy();
    throw error;
  }
}

function newClient(url: string) {
  return createClient({ url, socket: { reconnectStrategy: false } });
}
