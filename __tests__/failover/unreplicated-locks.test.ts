import { afterAll, expect, it } from '@jest/globals';
import { BEFORE, type KillResult, killUnderLoad } from '../replicas/kill-under-load';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate } from '../support/private-redis';
import { printTable } from './table';

const TRIES = 20;

/** Tries that run at the same time, each with servers of its own. */
const TOGETHER = 4;

describePrivate('a master is gone before it has replicated what it granted', () => {
  const rows: (string | number)[][] = [];

  afterAll(() =>
    printTable(['lock type', 'minReplicas', 'tries', 'locks acquired', 'locks lost', 'tries that lost'], rows),
  );

  async function measureTries(lockType: (typeof LOCK_TYPES)[number], minReplicas: number): Promise<KillResult[]> {
    const results: KillResult[] = [];
    while (results.length < TRIES) {
      const some = Array.from({ length: TOGETHER }, () => killUnderLoad(lockType, minReplicas));
      results.push(...(await Promise.all(some)));
    }
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    const acquired = sum(results.map((result) => result.acquired));
    const lost = sum(results.map((result) => result.lost));
    rows.push([lockType, minReplicas, TRIES, acquired, lost, results.filter((result) => result.lost > 0).length]);
    return results;
  }

  it('without minReplicas it loses locks that callers have', async () => {
    const results = await measureTries('spin', 0);
    expect(results.some(({ lost }) => lost > 0)).toBe(true);
  });

  it.each(LOCK_TYPES)(`with minReplicas 1 it loses no %s lock, in ${TRIES} tries`, async (lockType) => {
    for (const { acquired, lost } of await measureTries(lockType, 1)) {
      expect(acquired).toBeGreaterThanOrEqual(BEFORE);
      expect(lost).toBe(0);
    }
  });
});
