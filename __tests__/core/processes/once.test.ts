import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { DISTINCT_TYPES } from '../../support/lock-types';
import { createRealClient, describeReal, realRedis, type TestClient, uniqueKey } from '../../support/redis';
import { until } from '../../support/until';
import { type LockWorker, startWorkers } from './lock-worker';
import type { Job, OnceTask } from './worker';

const TTL = 500;

describeReal.each(DISTINCT_TYPES)('Once in several processes with locks of type %s', (lockType) => {
  let client: TestClient;
  let registryKey: string;

  beforeAll(async () => {
    client = await createRealClient();
  });

  beforeEach(() => {
    registryKey = uniqueKey('once');
  });

  const jobOf = (task: Partial<OnceTask>, expireAfter: number) =>
    ({
      ...{ redis: realRedis, registryKey, lockType, expireAfter },
      task: { name: 'once', key: 'key', callers: 250, work: 0, counter: `${registryKey}-runs`, ...task },
    }) as Job;

  const runs = async (): Promise<number> => Number(await client.get(`${registryKey}-runs`));

  async function resultsOf(workers: readonly LockWorker[]): Promise<string[]> {
    const reports = await Promise.all(workers.map((worker) => worker.next('done')));
    return reports.flatMap(({ results = [] }) => results);
  }

  it('A task of once runs once for 1,000 callers in 4 processes, and each has its result', async () => {
    const workers = await startWorkers(4);
    await Promise.all(workers.map((worker) => worker.begin(jobOf({ work: 50 }, 60_000))));
    const results = await resultsOf(workers);
    expect(results).toHaveLength(1_000);
    expect(new Set(results).size).toBe(1);
    expect(await runs()).toBe(1);
  });

  it('A task of once whose process is killed is run by another process', async () => {
    const [doomed, ...others] = (await startWorkers(3)) as [LockWorker, LockWorker, LockWorker];
    await doomed.begin(jobOf({ callers: 1, work: 60_000 }, TTL));
    await until(async () => (await runs()) === 1);
    await Promise.all(others.map((worker) => worker.begin(jobOf({ callers: 5 }, TTL))));
    await doomed.kill();
    const results = await resultsOf(others);
    expect(results).toHaveLength(10);
    expect([...new Set(results)]).toEqual([expect.stringMatching(/, run 2$/)]);
    expect(await runs()).toBe(2);
  });
});
