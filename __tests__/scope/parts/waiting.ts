import { describe, expect, it } from '@jest/globals';
import type { RedisClient, RedisCommands } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { isExcluded } from '../probes';

/** A client that can be switched to send nothing and never reply. */
interface SilenceableClient extends RedisClient {
  silent: boolean;
}

function silenceable(client: RedisClient): SilenceableClient {
  const never = () => new Promise<unknown>(() => undefined);
  const switchable = (commands: RedisCommands): RedisCommands => ({
    eval: (script, options) => (wrapper.silent ? never() : commands.eval(script, options)),
    evalSha: (sha1, options) => (wrapper.silent ? never() : commands.evalSha(sha1, options)),
  });
  const wrapper: SilenceableClient = {
    ...switchable(client),
    withCommandOptions: (options) => switchable(client.withCommandOptions?.(options) ?? client),
    silent: false,
  };
  return wrapper;
}

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
        expect(await isExcluded(lock)).toBe(false);
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
        // Also where nobody is inside.
        await expect(lock.run(() => order.push('never'), { signal })).rejects.toBe(reason);
        await expect(lock.tryLock({ signal })).rejects.toBe(reason);
      });
      expect(order).toEqual(['before', 'after']);
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
