import { expect, it } from '@jest/globals';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import type { LockFixture } from '../lock-fixture';

const CONCURRENT = 16;
const INCREMENTS = 5;

export function exclusion(fixture: LockFixture): void {
  it('Mutual exclusion holds for 16 concurrent tasks that count; without the lock the same tasks miscount', async () => {
    const registries = [fixture.registry(), fixture.otherRegistry()] as const;
    const counter = `${fixture.registryKey}:counter`;
    const oracle = fixture.oracle();
    const client = fixture.oracleClient;
    const increment = async () => {
      const before = Number(await client.get(counter));
      await client.set(counter, before + 1);
    };
    const allTasks = (increments: (i: number) => Promise<void>) =>
      Promise.all(
        Array.from({ length: CONCURRENT }, async (_, i) => {
          for (let round = 0; round < INCREMENTS; round++) await increments(i);
        }),
      );

    await allTasks(() => increment());
    expect(Number(await client.get(counter))).toBeLessThan(CONCURRENT * INCREMENTS);

    await client.set(counter, 0);
    await allTasks((i) => (registries[i % 2] as BackedLockRegistry).run('key', () => oracle.section(increment)));
    expect(await client.get(counter)).toBe(String(CONCURRENT * INCREMENTS));
    expect(oracle.violations).toEqual([]);
    expect(oracle.entered).toBe(CONCURRENT * INCREMENTS);
    await client.del(counter);
    expect(await fixture.isInRedis('key')).toBe(false);
  });
}
