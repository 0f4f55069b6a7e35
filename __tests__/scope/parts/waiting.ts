import { describe, expect, it } from '@jest/globals';
import { LockTimeoutError } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { silenceable } from '../silenceable-client';

export function waiting(fixture: LockFixture): void {
  describe('waiting for a sibling', () => {
    it('ends with waitTime: lock and run reject, tryLock resolves to null, and the task is not called', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.run(async () => {
        const sibling = await lock.lock();
        const start = performance.now();
        const timedOut = { code: 'ERR_LOCK_TIMEOUT', key: 'key', waitTime: 100 };
        let called = false;
        const task = () => {
          called = true;
        };
        const [tried] = await Promise.all([
          lock.tryLock({ waitTime: 100 }),
          expect(lock.lock({ waitTime: 100 })).rejects.toMatchObject(timedOut),
          expect(lock.run(task, { waitTime: 100 })).rejects.toMatchObject(timedOut),
        ]);
        const waited = performance.now() - start;
        expect(tried).toBeNull();
        expect(called).toBe(false);
        expect(waited).toBeGreaterThanOrEqual(90); // a timer counts from the start of its event loop turn
        expect(waited).toBeLessThan(100 + SLACK + machineDelay());
        sibling.assertHeld();
        await sibling.unlock();
      });
    });

    it('ends at once when the signal aborts, with its reason, and the others keep their positions', async () => {
      const lock = fixture.registry().obtain('key');
      const order: string[] = [];
      const controller = new AbortController();
      const reason = new Error('changed my mind');
      const { signal } = controller;
      await lock.run(async () => {
        const first = await lock.lock();
        const enter = (name: string) => lock.run(() => void order.push(name));
        const before = enter('before');
        const rejected = Promise.all([
          expect(lock.lock({ signal })).rejects.toBe(reason),
          expect(lock.tryLock({ signal, waitTime: 60_000 })).rejects.toBe(reason),
          expect(lock.run(() => order.push('never'), { signal })).rejects.toBe(reason),
        ]);
        const after = enter('after');
        const aborted = performance.now();
        controller.abort(reason);
        await rejected;
        expect(performance.now() - aborted).toBeLessThan(SLACK + machineDelay());
        expect(order).toEqual([]);
        await first.unlock();
        await Promise.all([before, after]);
      });
      expect(order).toEqual(['before', 'after']);
    });

    it('does not start for a signal that has aborted already', async () => {
      const lock = fixture.registry().obtain('key');
      const reason = new Error('not interested');
      const signal = AbortSignal.abort(reason);
      await lock.run(async () => {
        await expect(lock.run(() => 'never', { signal })).rejects.toBe(reason);
        await expect(lock.lock({ signal })).rejects.toBe(reason);
        await expect(lock.tryLock({ signal })).rejects.toBe(reason);
        const lease = await lock.tryLock();
        expect(lease).not.toBeNull();
        await lease?.unlock();
      });
    });

    it('leaves the turn free after the last waiter has left: the next tryLock succeeds', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.run(async () => {
        const first = await lock.lock();
        await expect(lock.lock({ waitTime: 10 })).rejects.toThrow(LockTimeoutError);
        await first.unlock();
        const next = await lock.tryLock();
        expect(next).not.toBeNull();
        await next?.unlock();
      });
    });

    it('obeys waitTime and signal also while Redis does not answer the extension of the lease (P1)', async () => {
      const client = silenceable(fixture.clients[0]);
      const lock = fixture.registryOn(client, { commandTimeout: 2_000 }).obtain('key');
      const controller = new AbortController();
      const reason = new Error('changed my mind');
      await lock.run(
        async () => {
          client.silent = true;
          try {
            const start = performance.now();
            await expect(lock.run(() => 'never', { ttl: 60_000, waitTime: 50 })).rejects.toThrow();
            expect(performance.now() - start).toBeLessThan(50 + SLACK + machineDelay());
            const rejected = expect(lock.run(() => 'never', { ttl: 60_000, signal: controller.signal })).rejects.toBe(
              reason,
            );
            const aborted = performance.now();
            controller.abort(reason);
            await rejected;
            expect(performance.now() - aborted).toBeLessThan(SLACK + machineDelay());
          } finally {
            client.silent = false;
          }
        },
        { ttl: 30_000 },
      );
      expect(await fixture.isInRedis('key')).toBe(false);
    });
  });
}
