import type { TestClient } from './redis';
import { until } from './until';

/** Commands that a registry sends; what its scripts execute does not count. */
const SENT = /^cmdstat_(?:eval|evalsha|s?subscribe|s?unsubscribe):calls=(\d+)/gm;

/** ms without a request after which the waiters are taken to be asleep. */
const QUIET = 80;

/** Requests that registries have sent to this server so far. */
async function requestsOf(admin: TestClient): Promise<number> {
  const stats = await admin.info('commandstats');
  return [...stats.matchAll(SENT)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** Resolves when no registry has sent a request for a moment: those that wait have subscribed, and sleep. */
export async function untilQuiet(admin: TestClient): Promise<void> {
  let before = -1;
  let since = performance.now();
  await until(
    async () => {
      const requests = await requestsOf(admin);
      if (requests !== before) since = performance.now();
      before = requests;
      return performance.now() - since > QUIET;
    },
    { within: 10_000 },
  );
}
