import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { Sections } from '../probes';

export function contexts(fixture: LockFixture): void {
  describe('asynchronous code', () => {
    it('that a task calls through many awaits, timers and microtasks is inside', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy).obtain('key');
      const oracle = fixture.oracle();
      await lock.run(async () => {
        const before = spy.sent;
        const enter = () => lock.run(() => oracle.section(() => undefined));
        await Promise.all([
          Promise.resolve()
            .then(() => null)
            .then(enter),
          new Promise((resolve) => setTimeout(() => resolve(enter()), 1)),
          new Promise((resolve) => setImmediate(() => resolve(enter()))),
          new Promise<void>((resolve) => process.nextTick(() => resolve(enter().then(() => undefined)))),
          new Promise<void>((resolve) => queueMicrotask(() => resolve(enter().then(() => undefined)))),
          fixture.admin.exists('whatever').then(enter),
        ]);
        expect(spy.sent).toBe(before);
      });
      expect(oracle).toMatchObject({ entered: 6, violations: [] });
    });

    it('of a timer that was set in the task is inside while the task runs, and outside afterwards', async () => {
      const spy = spyOn(fixture.clients[0]);
      const [lock, theirs] = [fixture.registryOn(spy).obtain('key'), fixture.otherRegistry().obtain('key')];
      const sections = new Sections(fixture.oracle());
      const ticked = new EventEmitter();
      let timer: NodeJS.Timeout | undefined;
      let isTheirs = false;
      await lock.run(async () => {
        timer = setInterval(() => ticked.emit('tick', lock.tryLock()), 5);
        const before = spy.sent;
        const [attempt] = (await once(ticked, 'tick')) as [ReturnType<typeof lock.tryLock>];
        const lease = await attempt;
        expect(lease).not.toBeNull();
        await sections.enter('inside');
        await lease?.unlock();
        expect(spy.sent).toBe(before);
        clearInterval(timer);
        timer = setInterval(() => isTheirs && ticked.emit('late', lock.tryLock()), 5);
      });
      const held = await theirs.lock();
      await sections.enter('theirs', async () => {
        const late = once(ticked, 'late');
        isTheirs = true;
        const [attempt] = (await late) as [ReturnType<typeof lock.tryLock>];
        clearInterval(timer);
        expect(await attempt).toBeNull();
      });
      await held.unlock();
      expect(sections.entered).toEqual(['inside', 'theirs']);
      expect(sections.violations).toEqual([]);
    });
  });
}
