import type { TestClient } from './redis';
import { isSince } from './since';
import { until } from './until';

const SCRIPTS = ['eval', 'evalsha'];

/** Commands that a registry sends; what its scripts execute does not count. */
const SENT = [...SCRIPTS, 'subscribe', 'unsubscribe', 'ssubscribe', 'sunsubscribe'];

/** ms without a request after which the waiters are taken to be asleep. */
const QUIET = 80;

/** Executions of these commands, by clients and scripts together, since the start or the last CONFIG RESETSTAT. */
export async function callsOf(admin: TestClient, ...commands: readonly string[]): Promise<number> {
  const stats = await admin.info('commandstats');
  const found = stats.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm);
  // A server before 7 counts a command as a whole, and not its subcommands.
  const names = commands.map((name) => (isSince('7.0') ? name : name.split('|')[0]));
  return [...found].reduce((sum, [, name = '', calls]) => sum + (names.includes(name) ? Number(calls) : 0), 0);
}

/** Requests that registries have sent to this server so far. */
export const requestsOf = (admin: TestClient): Promise<number> => callsOf(admin, ...SENT);

/** The scripts among them. */
export const scriptsRun = (admin: TestClient): Promise<number> => callsOf(admin, ...SCRIPTS);

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
