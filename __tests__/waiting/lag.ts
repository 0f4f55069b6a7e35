import { setTimeout as sleep } from 'node:timers/promises';
import type { TestClient } from '../support/redis';

const STEP = 5;

/**
 * Measures the delay that a busy machine adds: runs short pauses and PINGs beside the body, and resolves to the result of
 * the body and the longest delay of one of them. On two busy cores it may exceed what a test measures.
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
