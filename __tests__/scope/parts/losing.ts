import { describe, expect, it } from '@jest/globals';
import { type Lease, LockLostError } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { expectLost, lose, steal } from '../probes';

export function losing(fixture: LockFixture): void {
  describe('a lease that is lost', () => {
    it('admits no re-entry: run, lock and tryLock reject, send nothing, and make no new acquisition', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy).obtain('key');
      const called: string[] = [];
      await lock
        .run(async (lease) => {
          await lose(fixture, lease);
          const before = spy.sent;
          await expectLost(
            lock.run(() => called.push('run')),
            'expired',
          );
          await expectLost(lock.lock(), 'expired');
          await expectLost(lock.tryLock(), 'expired');
          await expectLost(lock.lock({ ttl: 600_000, waitTime: 1_000 }), 'expired');
          expect(spy.sent).toBe(before);
          expect(lock.isAcquiredInThisProcess).toBe(false);
          expect(await fixture.isInRedis('key')).toBe(false);
        })
        .catch((error: unknown) => expect(error).toBeInstanceOf(LockLostError));
      expect(called).toEqual([]);
    });

    it('makes every level that was inside reject with the result of its own task', async () => {
      const lock = fixture.registry().obtain('key');
      const results: unknown[] = [];
      const descend = async (level: number, lease: Lease): Promise<number> => {
        if (level === 3) await lose(fixture, lease);
        else {
          await lock
            .run((nested) => descend(level + 1, nested))
            .catch((error: LockLostError) => results.push(error.result));
        }
        return level;
      };
      await expect(lock.run((lease) => descend(0, lease))).rejects.toMatchObject({ result: 0, reason: 'expired' });
      expect(results).toEqual([3, 2, 1]);
    });

    it('to another process is lost on every level, and the new holder is not affected', async () => {
      const lock = fixture.registry().obtain('key');
      const theirs = await lock
        .run((outer) =>
          lock.run(async (middle) => {
            const thief = await steal(fixture, middle);
            for (const lease of [outer, middle]) {
              expect(lease.remaining).toBe(0);
              expect(() => lease.assertHeld()).toThrow(LockLostError);
            }
            await expectLost(lock.lock(), 'stolen');
            return thief;
          }),
        )
        .then(
          () => undefined,
          (error: LockLostError) => {
            expect(error.reason).toBe('stolen');
            return error.result as Lease;
          },
        );
      theirs?.assertHeld();
      expect(await fixture.isInRedis('key')).toBe(true);
      await theirs?.unlock();
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('is lost for a sibling that waits for its turn, too', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy).obtain('key');
      const called: string[] = [];
      const run = lock.run(async (lease) => {
        const first = await lock.lock();
        const waiting = [
          expectLost(lock.lock(), 'expired'),
          expectLost(
            lock.run(() => called.push('run')),
            'expired',
          ),
        ];
        await lose(fixture, lease);
        const before = spy.sent;
        await expectLost(first.unlock(), 'expired');
        await Promise.all(waiting);
        expect(spy.sent).toBe(before);
      });
      await expectLost(run, 'expired');
      expect(called).toEqual([]);
    });
  });
}
