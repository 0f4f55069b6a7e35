import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import type { RedisLock } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { until } from '../../support/until';

export function remembering(fixture: LockFixture): void {
  describe('what is remembered', () => {
    it('is nothing of a lock that the scope took and gave back, however long the scope lasts (P8)', async () => {
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
        const collect = garbageCollector();
        const isForgotten = (lock: WeakRef<RedisLock>) => lock.deref() === undefined;
        // All but what a register or a cache of the engine may still point at.
        await until(() => {
          collect();
          return taken.filter(isForgotten).length >= 95;
        });
        expect(registry.size).toBe(1);
      });
    });
  });
}

function garbageCollector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
