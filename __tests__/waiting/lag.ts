import { setTimeout as sleep } from 'node:timers/promises';
import type { TestClient } from '../support/redis';

const STEP = 5;

/**
 * How late the machine itself makes things: runs short pauses and PINGs beside the body, and answers with the body's
 * result and the longest that one of them took beyond its time. On two busy cores that may be more than what is measured.
 */
export async function withLag<T>(client: TestClient, body: () => Promise<T>): Promise<{ result: T; lag: number }> {
  let lag = 0;
  let over = false;
  const measuring = (async () => {
    while (!over) {
      const startedAt = performance.now();
      await sleep(STEP);
      await client.ping();
      lag = Math.max(lag, performance.now() - startedAt - STEP);
    }
  })();
  try {
    return { result: await body(), lag };
  } finally {
    over = true;
    await measuring;
  }
}
