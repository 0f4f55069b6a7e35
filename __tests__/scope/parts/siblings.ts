import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { Gate, isExcluded, Sections } from '../probes';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export function siblings(fixture: LockFixture): void {
  describe('siblings', () => {
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
  });
}
