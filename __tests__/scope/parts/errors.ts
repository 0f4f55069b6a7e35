import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { isExcluded } from '../probes';

const LEVELS = 4;

export function errors(fixture: LockFixture): void {
  describe('an error', () => {
    it.each([1, 2, 3, 4])(
      'of level %i of four surfaces as it is, and the outermost gives back, once',
      async (thrower) => {
        const spy = spyOn(fixture.clients[0]);
        const lock = fixture.registryOn(spy).obtain('key');
        await lock.run(() => undefined);
        const start = spy.sent;
        await lock.run(() => undefined);
        const ofOneRun = spy.sent - start;
        const error = new Error(`of level ${thrower}`);
        const descend = async (level: number): Promise<void> => {
          if (level < LEVELS) await lock.run(() => descend(level + 1));
          if (level === thrower) throw error;
        };
        const before = spy.sent;
        await expect(lock.run(() => descend(1))).rejects.toBe(error);
        expect(spy.sent - before).toBe(ofOneRun);
        expect(await fixture.isInRedis('key')).toBe(false);
        expect(await isExcluded(fixture.otherRegistry().obtain('key'))).toBe(false);
      },
    );

    it.each([2, 3, 4])(
      'of level %i that the level above catches leaves the lock held, and the turn free',
      async (thrower) => {
        const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
        const caught: number[] = [];
        const descend = async (level: number): Promise<void> => {
          if (level < LEVELS) {
            await lock
              .run(() => descend(level + 1))
              .catch(async () => {
                caught.push(level);
                expect(await isExcluded(theirs)).toBe(true);
                expect(await isExcluded(lock)).toBe(false);
              });
          }
          if (level === thrower) throw new Error(`of level ${level}`);
        };
        await lock.run(() => descend(1));
        expect(caught).toEqual([thrower - 1]);
        expect(await fixture.isInRedis('key')).toBe(false);
      },
    );

    it('that is thrown synchronously is treated alike', async () => {
      const lock = fixture.registry().obtain('key');
      const error = new Error('at once');
      const task = () => {
        throw error;
      };
      await lock.run(async () => {
        await expect(lock.run(task)).rejects.toBe(error);
        expect(await isExcluded(lock)).toBe(false);
        expect(await fixture.isInRedis('key')).toBe(true);
      });
      await expect(lock.run(() => lock.run(task))).rejects.toBe(error);
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('of one sibling does not affect the turns of the others', async () => {
      const lock = fixture.registry().obtain('key');
      const oracle = fixture.oracle();
      const outcomes = await lock.run(() =>
        Promise.allSettled(
          [0, 1, 2, 3].map((i) =>
            lock.run(() =>
              oracle.section(() => {
                if (i % 2 === 0) throw new Error(`of sibling ${i}`);
              }),
            ),
          ),
        ),
      );
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
      expect(oracle).toMatchObject({ entered: 4, violations: [] });
    });
  });
}
