import { describe, expect, it } from '@jest/globals';
import type { RedisLock } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { collectGarbage } from '../../support/collected';
import { until } from '../../support/until';

export function remembering(fixture: LockFixture): void {
  describe('the memory of a scope', () => {
    it('does not keep a lock that was acquired and released in it (P8)', async () => {
      const registry = fixture.registry();
      const takeAndGiveBack = async (i: number): Promise<WeakRef<RedisLock>> => {
        const lock = registry.obtain(`other ${i}`);
        await lock.lock();
        await lock.unlock();
        return new WeakRef(lock);
      };
      await registry.run('key', async () => {
        const taken = await Promise.all(Array.from({ length: 100 }, (_, i) => takeAndGiveBack(i)));
        registry.expireUnusedOlderThan(-1);
        const isForgotten = (lock: WeakRef<RedisLock>) => lock.deref() === undefined;
        // A register or cache of the engine may still reference some of them.
        await until(() => {
          collectGarbage();
          return taken.filter(isForgotten).length >= 95;
        });
        expect(registry.size).toBe(1);
      });
    });
  });
}
