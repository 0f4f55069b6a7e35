import { describe, expect, it } from '@jest/globals';
import { RegistryClosedError } from '../../../lib';
import { until } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { SLACK } from '../timing';

export function closing(fixture: LockFixture): void {
  describe('closing the registry', () => {
    it('rejects those who wait, in the local queue and for another process, and all who come later', async () => {
      const registry = fixture.registry();
      const theirs = await fixture.otherRegistry().obtain('theirs').lock();
      const mine = await registry.obtain('mine').lock();
      const refused = Promise.all([
        expect(registry.obtain('theirs').lock()).rejects.toBeInstanceOf(RegistryClosedError),
        expect(registry.obtain('theirs').lock()).rejects.toMatchObject({ key: 'theirs' }),
        expect(registry.obtain('mine').tryLock({ waitTime: 60_000 })).rejects.toMatchObject({
          code: 'ERR_REGISTRY_CLOSED',
        }),
      ]);
      const closed = registry.close();
      await refused;
      await expect(registry.obtain('later').lock()).rejects.toThrow(RegistryClosedError);
      await expect(registry.obtain('later').tryLock()).rejects.toThrow(RegistryClosedError);
      await expect(registry.run('later', () => undefined)).rejects.toThrow(RegistryClosedError);
      await mine.unlock();
      await closed;
      await theirs.unlock();
      expect(await fixture.isInRedis('mine')).toBe(false);
    });

    it('waits for the holders, whose leases are renewed as before', async () => {
      const registry = fixture.registry({ expireAfter: 400 });
      const lease = await registry.obtain('key').lock();
      let closed = false;
      const closing = registry.close().then(() => {
        closed = true;
      });
      const start = performance.now();
      await until(() => performance.now() - start > 520);
      lease.assertHeld();
      expect(closed).toBe(false);
      await lease.unlock();
      await closing;
      expect(lease.signal.aborted).toBe(false);
    });

    it('gives up on holders after its timeout: their signal aborts, and their key is left to expire (P8)', async () => {
      const registry = fixture.registry({ expireAfter: 400 });
      const lease = await registry.obtain('key').lock();
      const start = performance.now();
      await registry.close({ timeout: 50 });
      expect(performance.now() - start).toBeLessThan(50 + SLACK);
      expect(lease.signal.reason).toMatchObject({ reason: 'closed', key: 'key' });
      expect(lease.remaining).toBe(0);
      // Not deleted under the running task; renewed no more either.
      const lives = [await fixture.life('key'), await fixture.life('key')];
      for (const life of lives) expect(life).toBeGreaterThan(0);
      await until(async () => !(await fixture.isInRedis('key')), { within: 400 + SLACK });
    });

    it('may be done twice, by `await using` too, and leaves the client as it was', async () => {
      const own = fixture.registry();
      await (await own.obtain('key').lock()).unlock();
      await Promise.all([own.close(), own.close()]);
      await own[Symbol.asyncDispose]();
      const next = await fixture.registry().obtain('key').lock();
      await next.unlock();
    });
  });
}
