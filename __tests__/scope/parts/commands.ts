import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { type Monitor, startMonitor } from '../../support/monitor';

export function commands(fixture: LockFixture): void {
  describe('the commands of a scope', () => {
    let monitor: Monitor;
    beforeAll(async () => {
      monitor = await startMonitor();
    });
    afterAll(() => monitor.stop());

    /** The commands of this test that the server executed since the last call, in scripts too. */
    async function carriedOut(): Promise<string[]> {
      await monitor.settle();
      const ours = monitor.commands.filter(({ args }) => args.some((arg) => arg.includes(fixture.registryKey)));
      const names = ours.map(({ name, source }) => (source === 'lua' ? `${name} in a script` : name));
      monitor.clear();
      return names;
    }

    it('are none for a re-entry: run, lock, tryLock, unlock, siblings, a refusal, at any depth', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.run(async () => {
        expect(await carriedOut()).not.toEqual([]);
        await lock.run(() => lock.run(() => lock.run(() => undefined)));
        await Promise.all([1, 2, 3].map(() => lock.run(() => undefined)));
        const lease = await lock.lock();
        expect(await lock.tryLock()).toBeNull();
        expect(await lock.tryLock({ waitTime: 10 })).toBeNull();
        await lease.unlock();
        expect(await lock.tryLock()).not.toBeNull();
        await lock.unlock();
        await expect(lock.unlock()).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER' });
        await lock.run(() => undefined, { ttl: 1_000 });
        expect(await carriedOut()).toEqual([]);
      });
      expect(await carriedOut()).not.toEqual([]);
    });

    it('are the same for a run with ten nested levels and ten siblings as for a run without', async () => {
      const lock = fixture.registry().obtain('key');
      const descend = (levels: number): Promise<unknown> =>
        lock.run(() => (levels > 0 ? descend(levels - 1) : undefined));
      await lock.run(() => undefined); // loads the scripts into the server
      await carriedOut();
      await lock.run(() => undefined);
      const ofPlainRun = await carriedOut();
      await lock.run(async () => {
        await descend(10);
        await Promise.all(Array.from({ length: 10 }, () => descend(0)));
      });
      expect(await carriedOut()).toEqual(ofPlainRun);
      expect(ofPlainRun).not.toEqual([]);
    });

    it('are one renewal for a re-entry that extends the lease', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.run(
        async (lease) => {
          await lease.renew(40_000);
          await carriedOut();
          await lease.renew(50_000);
          const ofRenewal = await carriedOut();
          await lock.run(() => undefined, { ttl: 60_000 });
          expect(await carriedOut()).toEqual(ofRenewal);
        },
        { ttl: 30_000 },
      );
    });
  });
}
