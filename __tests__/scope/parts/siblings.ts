import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { until } from '../../support/until';
import { Gate } from '../gate';
import { isExcluded } from '../probes';
import { Sections } from '../sections';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export function siblings(fixture: LockFixture): void {
  describe('siblings', () => {
    it('take turns in FIFO order when they are started together', async () => {
      const registry = fixture.registry();
      const sections = new Sections(fixture.oracle());
      await registry.run('key', () =>
        Promise.all(numbers(10).map((i) => registry.run('key', () => sections.enter(`${i}`)))),
      );
      expect(sections.entered).toEqual(numbers(10).map(String));
      expect(sections.violations).toEqual([]);
    });

    it('take turns on two levels: the children of one finish before the next begins', async () => {
      const registry = fixture.registry();
      const sections = new Sections(fixture.oracle());
      const family = (parent: number) =>
        Promise.all(numbers(3).map((child) => registry.run('key', () => sections.enter(`${parent}.${child}`))));
      await registry.run('key', () => Promise.all(numbers(3).map((i) => registry.run('key', () => family(i)))));
      expect(sections.entered).toEqual(['0.0', '0.1', '0.2', '1.0', '1.1', '1.2', '2.0', '2.1', '2.2']);
      expect(sections.violations).toEqual([]);
    });

    it('take turns with any of run, lock and tryLock', async () => {
      const lock = fixture.registry().obtain('key');
      const sections = new Sections(fixture.oracle());
      const kinds = {
        run: (name: string) => lock.run(() => sections.enter(name)),
        lease: async (name: string) => {
          await using _lease = await lock.lock();
          await sections.enter(name);
        },
        // As in Spring: the lock is unlocked, not the lease.
        lock: async (name: string) => {
          await lock.lock();
          try {
            await sections.enter(name);
          } finally {
            await lock.unlock();
          }
        },
        tryLock: async (name: string) => {
          const lease = await lock.tryLock({ waitTime: 10_000 });
          expect(lease).not.toBeNull();
          await sections.enter(name);
          await lease?.unlock();
        },
      };
      const names = numbers(3).flatMap((i) => Object.keys(kinds).map((kind) => `${kind} ${i}`));
      await lock.run(() => Promise.all(names.map((name) => kinds[name.split(' ')[0] as keyof typeof kinds](name))));
      expect(sections.entered).toEqual(names);
      expect(sections.violations).toEqual([]);
    });

    it('take turns with callers outside the scope: first all of the scope, then the others', async () => {
      const [registry, other] = [fixture.registry(), fixture.otherRegistry()];
      const sections = new Sections(fixture.oracle());
      const gate = new Gate();
      const outsiders = [registry, other, registry].map(async (other) => {
        await gate.opened;
        await other.run('key', () => sections.enter('outside'));
      });
      await registry.run('key', async () => {
        gate.open();
        await Promise.all(numbers(4).map(() => registry.run('key', () => sections.enter('inside'))));
        await sections.enter('inside');
      });
      await Promise.all(outsiders);
      expect(sections.entered).toEqual([...Array(5).fill('inside'), ...Array(3).fill('outside')]);
      expect(sections.violations).toEqual([]);
    });

    it('are refused by tryLock while the turn is taken, and admitted right after its release', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.run(async () => {
        const first = await lock.lock();
        expect(await lock.tryLock()).toBeNull();
        await first.unlock();
        const second = await lock.tryLock();
        expect(second).not.toBeNull();
        await second?.unlock();
        await lock.run(async () => {
          // Its own turn is that of the scope that it opened.
          expect(await isExcluded(lock)).toBe(false);
        });
        expect(await isExcluded(lock)).toBe(false);
      });
    });

    it('are refused by tryLock while a nested run of a sibling is inside', async () => {
      const lock = fixture.registry().obtain('key');
      const gate = new Gate();
      await lock.run(async () => {
        const sibling = lock.run(() => gate.opened);
        expect(await lock.tryLock()).toBeNull();
        gate.open();
        await sibling;
        expect(await isExcluded(lock)).toBe(false);
      });
    });

    it('make a second lock in one scope wait for the release of the first', async () => {
      const lock = fixture.registry().obtain('key');
      const oracle = fixture.oracle();
      await lock.run(async () => {
        const first = await lock.lock();
        let entered = false;
        const second = lock.lock().then((lease) => {
          entered = true;
          return lease;
        });
        await oracle.section(() => lock.tryLock({ waitTime: 30 }));
        expect(entered).toBe(false);
        await first.unlock();
        const lease = await second;
        await oracle.section(() => lease.assertHeld());
        await lease.unlock();
      });
      expect(oracle).toMatchObject({ entered: 2, violations: [] });
    });

    it('take turns in order when there are a thousand', async () => {
      const lock = fixture.registry().obtain('key');
      const order: number[] = [];
      let inside = 0;
      await lock.run(async () => {
        await Promise.all(
          numbers(1_000).map((i) =>
            lock.run(async () => {
              expect(++inside).toBe(1);
              await Promise.resolve();
              order.push(i);
              inside--;
            }),
          ),
        );
      });
      expect(order).toEqual(numbers(1_000));
    });

    it('of two scopes of different processes do not interleave', async () => {
      const sections = new Sections(fixture.oracle());
      await Promise.all(
        [fixture.registry(), fixture.otherRegistry()].map(async (registry, process) => {
          for (const round of numbers(5)) {
            await registry.run('key', () =>
              Promise.all(numbers(2).map((i) => registry.run('key', () => sections.enter(`${process}.${round}.${i}`)))),
            );
          }
        }),
      );
      expect(sections.entered).toHaveLength(20);
      expect(sections.violations).toEqual([]);
      // The two siblings of one scope ran one after the other.
      for (const i of numbers(10)) {
        const [first, second] = sections.entered.slice(2 * i, 2 * i + 2);
        expect(second).toBe(first?.replace(/0$/, '1'));
      }
      await until(async () => !(await fixture.isInRedis('key')));
    });
  });
}
