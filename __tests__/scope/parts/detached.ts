import { describe, expect, it } from '@jest/globals';
import type { DistributedLock } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { Gate, isExcluded, Sections } from '../probes';

export function detached(fixture: LockFixture): void {
  describe('work that outlives its scope', () => {
    it('makes its own acquisition, and is excluded by another holder', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const sections = new Sections(fixture.oracle());
      const [scopeOver, refused] = [new Gate(), new Gate()];
      const work = await inScope(lock, async () => {
        await scopeOver.opened;
        expect(await lock.tryLock()).toBeNull();
        refused.open();
        await lock.run(async () => {
          expect(await isExcluded(theirs)).toBe(true);
          await sections.enter('detached');
        });
      });
      const held = await theirs.lock();
      await sections.enter('theirs', async () => {
        scopeOver.open();
        await refused.opened;
      });
      await sections.enter('still theirs');
      await held.unlock();
      await work.done;
      expect(sections.entered).toEqual(['theirs', 'still theirs', 'detached']);
      expect(sections.violations).toEqual([]);
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('is in the outer scope of the one that ended, while that is open', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy).obtain('key');
      const oracle = fixture.oracle();
      await lock.run(async () => {
        const before = spy.sent;
        const innerOver = new Gate();
        const work = await inScope(lock, async () => {
          await innerOver.opened;
          await lock.run(() => oracle.section(() => undefined));
        });
        innerOver.open();
        await Promise.all([work.done, lock.run(() => oracle.section(() => undefined))]);
        expect(spy.sent).toBe(before);
      });
      expect(oracle).toMatchObject({ entered: 2, violations: [] });
    });

    it('that waits for its turn when the scope ends makes its own acquisition', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const sections = new Sections(fixture.oracle());
      let second: Promise<unknown> = Promise.resolve();
      let held: Promise<unknown> = Promise.resolve();
      await lock.run(async () => {
        void lock.run(() => sections.enter('first'));
        second = lock.run(async () => {
          expect(await isExcluded(theirs)).toBe(true);
          await sections.enter('second');
        });
        held = theirs.run(() => sections.enter('theirs'));
      });
      await Promise.all([second, held]);
      expect(sections.entered[0]).toBe('first');
      expect([...sections.entered].sort()).toEqual(['first', 'second', 'theirs']);
      expect(sections.violations).toEqual([]);
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('does not wait for ever for a turn that was not released in the scope that ended', async () => {
      const lock = fixture.registry().obtain('key');
      const oracle = fixture.oracle();
      let waiting: Promise<unknown> = Promise.resolve();
      await lock.run(async () => {
        await lock.lock();
        waiting = lock.run(() => oracle.section(() => undefined), { waitTime: 2_000 });
        waiting.catch(() => undefined);
      });
      await waiting;
      expect(oracle).toMatchObject({ entered: 1, violations: [] });
    });

    it('with a nested lease of the scope that ended no longer holds the lock', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const lease = await lock.run(() => lock.lock());
      expect(lease.remaining).toBe(0);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'ERR_NOT_LOCK_OWNER' }));
      await expect(lease.renew()).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER' });
      const held = await theirs.lock();
      await lease.unlock();
      held.assertHeld();
      expect(await fixture.isInRedis('key')).toBe(true);
      await held.unlock();
    });
  });
}

/** Starts work in a run of the lock that does not wait for it, and returns when that run is over. */
async function inScope(lock: DistributedLock, work: () => Promise<void>): Promise<{ readonly done: Promise<void> }> {
  return lock.run(() => {
    const done = work();
    done.catch(() => undefined); // handled by the test
    return { done };
  });
}
