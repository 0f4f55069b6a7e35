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
        // The innermost task throws synchronously.
        const descend = (level: number): unknown => {
          const end = () => {
            if (level === thrower) throw error;
          };
          return level < LEVELS ? lock.run(() => descend(level + 1)).then(end) : end();
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
  });
}
