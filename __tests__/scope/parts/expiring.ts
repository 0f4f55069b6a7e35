import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { block } from '../../support/block';
import { spyOn } from '../../support/spied-client';
import { until } from '../../support/until';
import { expectLost, isExcluded } from '../probes';

export function expiring(fixture: LockFixture): void {
  describe('a lease that ends with its ttl', () => {
    it('is detected at once after a pause of the process, before any timer has run (P5)', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy).obtain('key');
      const run = lock.run(
        async () => {
          const nested = await lock.lock();
          const before = spy.sent;
          block(600);
          expect(nested.remaining).toBe(0);
          await Promise.all([
            expectLost(
              lock.run(() => 'never'),
              'expired',
            ),
            expectLost(lock.tryLock(), 'expired'),
          ]);
          expect(spy.sent).toBe(before);
        },
        { ttl: 500 },
      );
      await expectLost(run, 'expired');
    });

    it('aborts the signal of a nested lease, by a local timer', async () => {
      const lock = fixture.registry().obtain('key');
      const run = lock.run(
        () =>
          lock.run(async ({ signal }) => {
            await until(() => signal.aborted);
            expect(signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', reason: 'expired' });
          }),
        { ttl: 300 },
      );
      await expectLost(run, 'expired');
      expect(await isExcluded(fixture.otherRegistry().obtain('key'))).toBe(false);
    });
  });
}
