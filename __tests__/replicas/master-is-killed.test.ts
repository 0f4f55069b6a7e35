import { describe, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { ReplicaFixture } from './replica-fixture';

/** More tries find more: `TRIES=20 npx jest __tests__/replicas/master-is-killed`. */
const TRIES = Number(process.env.TRIES ?? 2);

/** ms by which the replica is behind. */
const LAG = 20;

/** Callers that take one key after the other. */
const CALLERS = 5;

/**
 * Callers take locks until the master is killed and the replica takes its place. Resolves to the number of locks that
 * were acquired, and those of them that the new master does not have.
 */
async function killUnderLoad(lockType: (typeof LOCK_TYPES)[number], minReplicas: number) {
  const fixture = new ReplicaFixture();
  await fixture.start(1);
  fixture.lagBy(LAG);
  const { registry, nameOf } = await fixture.registry({ lockType, minReplicas, replicaTimeout: 2_000 });
  const acquired: string[] = [];
  let isOver = false;
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let i = 0; !isOver; i++) {
      const key = `${caller}/${i}`;
      const lease = await registry.obtain(key).tryLock();
      if (lease !== null) acquired.push(nameOf(key));
    }
  });
  // The last ones fail with the connection.
  const settled = Promise.allSettled(callers);
  await until(() => acquired.length >= 20);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 2 * LAG));
  await fixture.failOver();
  isOver = true;
  const lost: string[] = [];
  for (const name of [...acquired]) if (Number(await fixture.replica.send('EXISTS', name)) === 0) lost.push(name);
  await registry.close({ timeout: 0 });
  await settled;
  await fixture.stop();
  return { acquired: acquired.length, lost: lost.length };
}

describePrivate('a master is killed before it has replicated what it granted', () => {
  it('loses locks that callers have, without minReplicas', async () => {
    const { lost } = await killUnderLoad('spin', 0);
    expect(lost).toBeGreaterThan(0);
  });

  describe.each(LOCK_TYPES)('with minReplicas: 1, %s', (lockType) => {
    it(`loses none, in ${TRIES} tries`, async () => {
      for (let i = 0; i < TRIES; i++) {
        const { acquired, lost } = await killUnderLoad(lockType, 1);
        expect(acquired).toBeGreaterThanOrEqual(20);
        expect(lost).toBe(0);
      }
    }, 600_000);
  });
});
