import { expect, it } from '@jest/globals';
import { LockTimeoutError } from '../../../lib';
import { HoldableClient } from '../../support/holdable-client';
import { machineDelay } from '../../support/machine-delay';
import { spyOn } from '../../support/spied-client';
import { until, WAIT_LIMIT } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { EARLY, SLACK } from '../timing';

/** Resolves when what was asked of the library has been sent and answered. */
async function allAnswered(client: HoldableClient): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await until(() => client.inFlight === 0);
}

export function waiting(fixture: LockFixture): void {
  it.each(['the same', 'another'])(
    'A waiting caller acquires the lock soon after its release in %s process',
    async (where) => {
      const registry = fixture.registry();
      const lease = await registry.obtain('key').lock({ ttl: 60_000 });
      const spy = spyOn(fixture.clients[1]);
      const waiter = where === 'another' ? fixture.registryOn(spy) : registry;
      let entered = false;
      const next = waiter.obtain('key').lock();
      void next.then(() => {
        entered = true;
      });
      // Its first attempt was refused; in one process it waits in the local queue.
      if (where === 'another') await until(() => spy.sent >= (fixture.kind.requestsOfWaiter ?? 2));
      expect(entered).toBe(false);
      const released = performance.now();
      await lease.unlock();
      await (await next).unlock();
      expect(performance.now() - released).toBeLessThan(SLACK + machineDelay());
    },
  );

  it('A waiting caller acquires the lock when the ttl of a vanished holder ends, neither before nor much later', async () => {
    const taken = performance.now();
    await fixture.registry().obtain('key').lock({ ttl: 200 });
    const next = await fixture.otherRegistry().obtain('key').lock();
    const waited = performance.now() - taken;
    expect(waited).toBeGreaterThanOrEqual(200 - 1); // Redis counts in whole ms
    expect(waited).toBeLessThan(200 + SLACK + machineDelay());
    await next.unlock();
  });

  it.each(['the same', 'another'])(
    'A waiting caller waits no longer than waitTime for a holder in %s process (P1)',
    async (where) => {
      const holders = fixture.registry();
      const lease = await holders.obtain('key').lock();
      const lock = (where === 'another' ? fixture.otherRegistry() : holders).obtain('key');
      const start = performance.now();
      await Promise.all([
        expect(lock.lock({ waitTime: 200 })).rejects.toBeInstanceOf(LockTimeoutError),
        expect(lock.lock({ waitTime: 200 })).rejects.toMatchObject({ waitTime: 200, key: 'key' }),
        expect(lock.tryLock({ waitTime: 200 })).resolves.toBeNull(),
      ]);
      const waited = performance.now() - start;
      expect(waited).toBeGreaterThanOrEqual(200 - EARLY);
      expect(waited).toBeLessThan(200 + SLACK + machineDelay());
      lease.assertHeld();
      await lease.unlock();
      // Through a pool, the release may still be handed over to callers that are leaving.
      await until(async () => !(await fixture.isInRedis('key')));
    },
  );

  it.each(['the same', 'another'])(
    'A call that would be one more waiting caller than maxWaiting rejects at once: holder in %s process',
    async (where) => {
      const options = { maxWaiting: 2 };
      const holders = fixture.registry(options);
      const lease = await holders.obtain('key').lock();
      const lock = (where === 'another' ? fixture.otherRegistry(options) : holders).obtain('key');
      const stop = new AbortController();
      const left = expect(lock.lock({ signal: stop.signal })).rejects.toBe('left');
      const { passing } = lock as { passing?: { waiting: number } };
      await until(() => passing?.waiting === 1);
      const second = lock.lock();
      const full = { name: 'LockQueueFullError', code: 'ERR_LOCK_QUEUE_FULL', key: 'key', maxWaiting: 2 };
      await until(() => passing?.waiting === 2);
      await expect(lock.lock({ waitTime: 500 })).rejects.toMatchObject(full);
      await expect(lock.run(() => 'never', { waitTime: 500 })).rejects.toMatchObject(full);
      await expect(lock.tryLock({ waitTime: 500 })).rejects.toMatchObject(full);
      expect(await lock.tryLock()).toBeNull();
      stop.abort('left');
      await left;
      const third = lock.lock();
      await expect(lock.lock({ waitTime: 500 })).rejects.toMatchObject(full);
      await lease.unlock();
      await (await second).unlock();
      await (await third).unlock();
      // Those that were refused have left nothing behind.
      await until(async () => !(await fixture.isInRedis('key')));
    },
  );

  it('Of callers that come together, those in front wait, and those behind are more than maxWaiting', async () => {
    const options = { maxWaiting: 2 };
    const lease = await fixture.otherRegistry(options).obtain('key').lock();
    const lock = fixture.registry(options).obtain('key');
    const calls = [1, 2, 3, 4].map(() => lock.lock().then((granted) => granted.unlock()));
    const [first, second, third, fourth] = calls as [Promise<void>, Promise<void>, Promise<void>, Promise<void>];
    void third.catch(() => undefined);
    await expect(fourth).rejects.toMatchObject({ name: 'LockQueueFullError' });
    await lease.unlock();
    await Promise.all([first, second]);
  });

  it('A signal that has aborted already rejects the call with its reason, and nothing is sent', async () => {
    const spy = spyOn(fixture.clients[0]);
    const lock = fixture.registryOn(spy).obtain('key');
    const reason = { why: 'cancelled' };
    const signal = AbortSignal.abort(reason);
    await expect(lock.lock({ signal })).rejects.toBe(reason);
    await expect(lock.tryLock({ signal })).rejects.toBe(reason);
    await expect(lock.run(() => 'never', { signal })).rejects.toBe(reason);
    expect(spy.sent).toBe(0);
  });

  it.each(['the same', 'another'])(
    'A waiting caller is rejected at once when its signal aborts, and gets no lock later: holder in %s process (P2)',
    async (where) => {
      const holders = fixture.registry();
      const lease = await holders.obtain('key').lock();
      const spy = spyOn(fixture.clients[1]);
      const waiters = where === 'another' ? fixture.registryOn(spy) : holders;
      const controller = new AbortController();
      const reason = new Error('cancelled');
      const waiting = waiters.obtain('key').lock({ signal: controller.signal });
      const rejected = expect(waiting).rejects.toBe(reason);
      if (where === 'another') await until(() => spy.sent >= (fixture.kind.requestsOfWaiter ?? 2));
      const aborted = performance.now();
      controller.abort(reason);
      await rejected;
      expect(performance.now() - aborted).toBeLessThan(SLACK + machineDelay());
      await lease.unlock();
      // An attempt in flight is undone; then the lock stays free.
      await until(async () => !(await fixture.isInRedis('key')));
      const next = await fixture.otherRegistry().obtain('key').lock({ waitTime: WAIT_LIMIT });
      await next.unlock();
      expect(waiters.obtain('key').isAcquiredInThisProcess).toBe(false);
    },
  );

  it('The callers of one process are served in FIFO order, also when some of them abort', async () => {
    const client = new HoldableClient(fixture.clients[0]);
    const lock = (fixture.kind.mayReorder ? fixture.registryOn(client) : fixture.registry()).obtain('key');
    const first = await lock.lock();
    const order: number[] = [];
    const aborting = new AbortController();
    const take = async (i: number) => {
      const lease = await lock.lock(i % 4 === 1 ? { signal: aborting.signal } : {});
      order.push(i);
      await lease.unlock();
    };
    const outcomes: Promise<void>[] = [];
    for (let i = 0; i < 20; i++) {
      outcomes.push(take(i));
      if (fixture.kind.mayReorder) await allAnswered(client);
    }
    const settled = Promise.allSettled(outcomes);
    aborting.abort();
    await first.unlock();
    const rejected = (await settled).flatMap(({ status }, i) => (status === 'rejected' ? [i] : []));
    expect(rejected).toEqual([1, 5, 9, 13, 17]);
    expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i).filter((i) => i % 4 !== 1));
  });

  it('A wait ends also when the holder releases just as it begins', async () => {
    const [mine, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
    for (let round = 0; round < 20; round++) {
      const lease = await mine.lock();
      const [next] = await Promise.all([theirs.lock({ waitTime: 2_000 }), lease.unlock()]);
      await next.unlock();
    }
  });
}
