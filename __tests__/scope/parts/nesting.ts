import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { isExcluded, Sections } from '../probes';

export function nesting(fixture: LockFixture): void {
  describe('nesting', () => {
    it('lets a nested run in, ten levels deep, and only the outermost releases the lock', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const oracle = fixture.oracle();
      const descend = async (level: number): Promise<number> => {
        const depth = level === 10 ? level : await lock.run(() => descend(level + 1));
        // Also on the way back: nothing was released yet.
        expect(await fixture.isInRedis('key')).toBe(true);
        expect(await isExcluded(theirs)).toBe(true);
        await oracle.section(() => undefined);
        return depth;
      };
      expect(await lock.run(() => descend(1))).toBe(10);
      expect(oracle).toMatchObject({ entered: 10, violations: [] });
      expect(await fixture.isInRedis('key')).toBe(false);
      expect(await isExcluded(theirs)).toBe(false);
    });

    it('lets lock and unlock in a run, by the lease and by the lock, and still holds after the unlock', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const oracle = fixture.oracle();
      await lock.run(async () => {
        const locked = await lock.lock();
        await oracle.section(() => locked.assertHeld());
        await locked.unlock();
        await lock.lock();
        await oracle.section(() => undefined);
        await lock.unlock();
        const tried = await lock.tryLock();
        await oracle.section(() => tried?.assertHeld());
        expect(tried).not.toBeNull();
        await tried?.unlock();
        expect(await isExcluded(theirs)).toBe(true);
      });
      expect(oracle).toMatchObject({ entered: 3, violations: [] });
      expect(await isExcluded(theirs)).toBe(false);
    });

    it('shows the same lease to the nested holder: key, remaining time, signal and fencing token', async () => {
      const lock = fixture.registry({ fencing: true }).obtain('key');
      await lock.run(async (outer) => {
        const nested = await lock.lock();
        expect(nested.key).toBe('key');
        expect(nested.fencingToken).toBe(outer.fencingToken);
        expect(nested.fencingToken).toBeGreaterThan(0);
        expect(nested.signal).toBe(outer.signal);
        const longest = outer.remaining;
        const { remaining } = nested;
        expect(remaining).toBeLessThanOrEqual(longest);
        expect(remaining).toBeGreaterThanOrEqual(outer.remaining);
        await nested.renew(600_000);
        expect(outer.remaining).toBeGreaterThan(500_000);
        await nested.unlock();
        expect(nested.remaining).toBe(0);
        expect(() => nested.assertHeld()).toThrow(expect.objectContaining({ code: 'ERR_NOT_LOCK_OWNER', key: 'key' }));
        await expect(nested.renew()).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER', key: 'key' });
        outer.assertHeld();
        expect(outer.signal.aborted).toBe(false);
      });
    });

    it('frees the turn once for any number of unlocks of a nested lease', async () => {
      const lock = fixture.registry().obtain('key');
      const sections = new Sections(fixture.oracle());
      await lock.run(async () => {
        const first = await lock.lock();
        const waiters = ['second', 'third'].map((name) =>
          lock.run(() =>
            sections.enter(name, async () => {
              await Promise.all([first.unlock(), first.unlock()]);
              await first[Symbol.asyncDispose]();
              // Enough time for the third to enter, if it could.
              expect(await fixture.isInRedis('key')).toBe(true);
            }),
          ),
        );
        await first.unlock();
        await first.unlock();
        await Promise.all(waiters);
      });
      expect(sections.entered).toEqual(['second', 'third']);
      expect(sections.violations).toEqual([]);
    });

    it('ends the scope with its lease: after an early unlock a nested run makes a new acquisition', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const oracle = fixture.oracle();
      await lock.run(async (lease) => {
        await lease.unlock();
        const held = await theirs.lock();
        expect(await lock.tryLock()).toBeNull();
        const run = lock.run(() => oracle.section(() => undefined));
        await oracle.section(() => held.assertHeld());
        await held.unlock();
        await run;
      });
      expect(oracle).toMatchObject({ entered: 2, violations: [] });
      expect(await fixture.isInRedis('key')).toBe(false);
    });
  });
}
