import { describe, expect, it } from '@jest/globals';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { until } from '../../support/until';
import type { LockFixture } from '../lock-fixture';

const CONCURRENT = 16;
const INCREMENTS = 5;

export function exclusion(fixture: LockFixture): void {
  describe('mutual exclusion', () => {
    it('holds for 16 concurrent tasks that count; without the lock the same tasks miscount', async () => {
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

    it('holds when 100 callers contend at once, and all of them acquire the lock', async () => {
      const [mine, theirs] = [fixture.registry(), fixture.otherRegistry()];
      const oracle = fixture.oracle();
      const blocker = await mine.obtain('key').lock();
      const callers = Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          (i % 2 ? mine : theirs).run('key', () => oracle.section(() => undefined)),
        ),
      );
      await blocker.unlock();
      await callers;
      expect(oracle.violations).toEqual([]);
      expect(oracle.entered).toBe(100);
    });

    it('holds for each key separately: three groups are inside at once, never two tasks of one group', async () => {
      const [mine, theirs] = [fixture.registry(), fixture.otherRegistry()];
      const groups = ['a', 'b', 'c'];
      const oracles = new Map(groups.map((group) => [group, fixture.oracle()]));
      let inside = 0;
      let wereAllInside = false;
      await Promise.all(
        groups.flatMap((group) =>
          [mine, theirs].map((registry) =>
            registry.run(group, () =>
              oracles.get(group)?.section(async () => {
                inside += 1;
                await until(() => {
                  wereAllInside ||= inside === groups.length;
                  return wereAllInside;
                });
                inside -= 1;
              }),
            ),
          ),
        ),
      );
      expect([...oracles.values()].flatMap(({ violations }) => violations)).toEqual([]);
      for (const group of groups) expect(await fixture.isInRedis(group)).toBe(false);
    });
  });
}
