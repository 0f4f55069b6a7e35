import { beforeAll, expect, it } from '@jest/globals';
import { LOCK_TYPES, type LockType } from '../../lib/protocols/lock-types';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { type LockWorker, runIn, startWorkers } from './lock-worker';
import type { CountingTask } from './worker';

const PROCESSES = 4;
const CALLERS = 2;
const TIMES = 100;
const ALL = PROCESSES * CALLERS * TIMES;

describeReal(`${PROCESSES} processes that count to ${ALL} by reading and writing`, () => {
  let client: TestClient;

  beforeAll(async () => {
    client = await createRealClient();
  });

  const count = async (workers: readonly LockWorker[], lockType: LockType, locked: boolean) => {
    const [counter, registryKey] = [uniqueKey('counter'), uniqueKey('registry')];
    const inside = `${counter}:inside`;
    const task: CountingTask = { name: 'count', locked, callers: CALLERS, times: TIMES, counter, inside };
    const violations = await runIn(workers, { registryKey, lockType, expireAfter: 60_000, task });
    const counted = Number(await client.get(counter));
    await client.del([counter, inside]);
    const tokens = /:fence$|^redisson_lock_token:/;
    const left = (await client.keys(`*${registryKey}*`)).filter((name) => !tokens.test(name));
    return { violations, counted, left };
  };

  it('count correctly under a lock of each type, and leave no key behind; without a lock they miscount', async () => {
    const workers = await startWorkers(PROCESSES);
    for (const lockType of LOCK_TYPES) {
      expect({ lockType, ...(await count(workers, lockType, true)) }).toEqual({
        lockType,
        violations: [],
        counted: ALL,
        left: [],
      });
    }
    expect((await count(workers, 'spin', false)).counted).toBeLessThan(ALL);
  });
});
