import { describe, expect, it } from '@jest/globals';
import { RegistryClosedError } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { Gate, isExcluded } from '../probes';

export function neighbours(fixture: LockFixture): void {
  describe('the identity of a lock', () => {
    it('is not needed by different keys of one scope, which do not wait for each other', async () => {
      const registry = fixture.registry();
      const [one, two] = [new Gate(), new Gate()];
      await registry.run('one', () =>
        registry.run('two', () =>
          Promise.all([
            registry.run('one', async () => {
              one.open();
              await two.opened;
            }),
            registry.run('two', async () => {
              two.open();
              await one.opened;
            }),
          ]),
        ),
      );
      expect([await fixture.isInRedis('one'), await fixture.isInRedis('two')]).toEqual([false, false]);
    });

    it('is that of an evicted lock object, inside the scope of its replacement', async () => {
      const spy = spyOn(fixture.clients[0]);
      const registry = fixture.registryOn(spy);
      const theirs = fixture.otherRegistry().obtain('key');
      const forgotten = registry.obtain('key');
      registry.expireUnusedOlderThan(-1);
      const fresh = registry.obtain('key');
      expect(fresh).not.toBe(forgotten);
      const oracle = fixture.oracle();
      await fresh.run(async () => {
        const before = spy.sent;
        await Promise.all([
          forgotten.run(() => oracle.section(() => undefined)),
          fresh.run(() => oracle.section(() => undefined)),
          forgotten.run(() => fresh.run(() => oracle.section(() => undefined))),
        ]);
        await forgotten.lock();
        await fresh.unlock();
        await fresh.lock();
        await forgotten.unlock();
        expect(forgotten.isAcquiredInThisProcess).toBe(true);
        expect(spy.sent).toBe(before);
        expect(await isExcluded(theirs)).toBe(true);
      });
      expect(oracle).toMatchObject({ entered: 3, violations: [] });
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('is still usable in running tasks while the registry closes, nested runs included, and by no other caller', async () => {
      const spy = spyOn(fixture.clients[0]);
      const registry = fixture.registryOn(spy);
      const lock = registry.obtain('key');
      const oracle = fixture.oracle();
      const [inside, closing] = [new Gate(), new Gate()];
      const holder = lock.run(async () => {
        inside.open();
        await closing.opened;
        const before = spy.sent;
        await Promise.all([1, 2].map(() => lock.run(() => oracle.section(() => undefined))));
        const lease = await lock.lock();
        await lease.unlock();
        const tried = await lock.tryLock();
        await tried?.unlock();
        expect(tried).not.toBeNull();
        expect(spy.sent).toBe(before);
        await expect(registry.run('another', () => 'never')).rejects.toThrow(RegistryClosedError);
        return 'done';
      });
      await inside.opened;
      let closed = false;
      const close = registry.close().then(() => {
        closed = true;
      });
      await expect(lock.run(() => 'never')).rejects.toThrow(RegistryClosedError);
      closing.open();
      expect(closed).toBe(false);
      expect(await holder).toBe('done');
      await close;
      expect(oracle).toMatchObject({ entered: 2, violations: [] });
      expect(await fixture.isInRedis('key')).toBe(false);
    });
  });
}
