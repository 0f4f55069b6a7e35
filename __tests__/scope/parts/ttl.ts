import { describe, expect, it } from '@jest/globals';
import type { DistributedLock, LockOptions } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { reliable, SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { spyOn } from '../../support/spied-client';

const reenter: Record<string, (lock: DistributedLock, options: LockOptions) => Promise<unknown>> = {
  run: (lock, options) => lock.run(() => undefined, options),
  lock: async (lock, options) => (await lock.lock(options)).unlock(),
  tryLock: async (lock, options) => (await lock.tryLock(options))?.unlock(),
};

export function ttl(fixture: LockFixture): void {
  describe('a ttl on re-entry', () => {
    it.each(Object.entries(reenter))(
      'that is longer extends the lease, also beyond the nested %s',
      async (_, enter) => {
        const lock = fixture.registry().obtain('key');
        await lock.run(
          async (lease) => {
            await enter(lock, { ttl: 600_000 });
            expect(lease.remaining).toBeGreaterThan(reliable(600_000) - SLACK - machineDelay());
            expect(await fixture.ttlOf('key')).toBeGreaterThan(600_000 - SLACK - machineDelay());
          },
          { ttl: 30_000 },
        );
        expect(await fixture.isInRedis('key')).toBe(false);
      },
    );

    it.each(Object.entries(reenter))(
      'that is shorter does not shorten the lease, and sends nothing: %s',
      async (_, enter) => {
        const spy = spyOn(fixture.clients[0]);
        const lock = fixture.registryOn(spy).obtain('key');
        await lock.run(
          async (lease) => {
            const before = spy.sent;
            await enter(lock, { ttl: 1_000 });
            await enter(lock, { ttl: 1_000 });
            expect(spy.sent).toBe(before);
            expect(lease.remaining).toBeGreaterThan(reliable(60_000) - SLACK - machineDelay());
            expect(await fixture.ttlOf('key')).toBeGreaterThan(60_000 - SLACK - machineDelay());
          },
          { ttl: 60_000 },
        );
      },
    );

    it('that is absent does not change a fixed lease, for any default', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy, { expireAfter: 600_000 }).obtain('key');
      await lock.run(
        async (lease) => {
          const before = spy.sent;
          for (const enter of Object.values(reenter)) await enter(lock, {});
          expect(spy.sent).toBe(before);
          expect(lease.remaining).toBeLessThanOrEqual(30_000);
        },
        { ttl: 30_000 },
      );
    });

    it('detects a lost lease: the nested task is not called, and the turn is free', async () => {
      const lock = fixture.registry().obtain('key');
      const run = lock.run(
        async () => {
          await fixture.admin.del(fixture.nameOf('key'));
          await expect(lock.run(() => 'never', { ttl: 600_000 })).rejects.toMatchObject({ reason: 'expired' });
          await expect(lock.tryLock()).rejects.toMatchObject({ reason: 'expired' });
          return 'result';
        },
        { ttl: 30_000 },
      );
      await expect(run).rejects.toMatchObject({ reason: 'expired', result: 'result' });
      expect(await fixture.isInRedis('key')).toBe(false);
    });
  });
}
