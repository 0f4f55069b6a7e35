import { beforeAll, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../../lib/kinds';
import { type LockWorker, runIn, startWorkers } from '../core/processes/lock-worker';
import type { TransferTask } from '../core/processes/worker';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { until } from '../support/until';

const TTL = 1_000;
const START = 1_000;

describeReal('Processes that move money between accounts, under the locks of both', () => {
  let client: TestClient;

  beforeAll(async () => {
    client = await createRealClient();
  });

  it.each(LOCK_TYPES)(
    'Processes that move money between accounts, under the locks of both, neither create nor lose any, also when one is killed: %s',
    async (lockType) => {
      const registryKey = uniqueKey('multi');
      const accounts = Array.from({ length: 6 }, (_, i) => uniqueKey(`account ${i}`));
      await Promise.all(accounts.map((account) => client.set(account, START)));
      const workers = await startWorkers(3);
      const task: TransferTask = { name: 'transfer', callers: 3, times: 25, accounts };
      const job = { registryKey, lockType, expireAfter: TTL, task };
      const [victim, ...others] = workers as [LockWorker, ...LockWorker[]];
      void runIn([victim], job).catch(() => undefined);
      const done = runIn(others, job);
      await until(async () => (await client.mGet(accounts)).some((balance) => Number(balance) !== START));
      await victim.kill();
      await done;
      const balances = (await client.mGet(accounts)).map(Number);
      expect(balances.reduce((sum, balance) => sum + balance)).toBe(accounts.length * START);
      // With this many transfers no account is as it was, unless they did nothing.
      expect(balances.some((balance) => balance !== START)).toBe(true);
      await client.del(accounts);
    },
  );
});
