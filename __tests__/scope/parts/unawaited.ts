import { describe, expect, it } from '@jest/globals';
import type { LockFixture } from '../../contract/lock-fixture';
import { until } from '../../support/until';
import { Gate, isExcluded, Sections } from '../probes';

export function unawaited(fixture: LockFixture): void {
  describe('a nested run that is not awaited', () => {
    it('is under the lock to its end: the outermost run waits for it before it releases the lock', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const sections = new Sections(fixture.oracle());
      const [taskOver, gate] = [new Gate(), new Gate()];
      const settled: string[] = [];
      const outer = lock
        .run(() => {
          void lock.run(() => sections.enter('nested', () => gate.opened)).then(() => settled.push('nested'));
          taskOver.open();
          return 'result';
        })
        .finally(() => settled.push('outer'));
      await taskOver.opened;
      const other = theirs.run(() => sections.enter('other'));
      await until(() => sections.entered.length > 0);
      expect(await isExcluded(theirs)).toBe(true);
      expect(settled).toEqual([]);
      gate.open();
      expect(await outer).toBe('result');
      expect(settled).toEqual(['nested', 'outer']);
      await other;
      expect(sections.entered).toEqual(['nested', 'other']);
      expect(sections.violations).toEqual([]);
    });

    it('is waited for also when the task of the outer run fails, and that error is reported', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const gate = new Gate();
      const [ofTheTask, ofNested] = [new Error('of the task'), new Error('of the nested run')];
      const settled: string[] = [];
      let nested: Promise<void> = Promise.resolve();
      const outer = lock.run(() => {
        nested = expect(
          lock.run(async () => {
            await gate.opened;
            throw ofNested;
          }),
        ).rejects.toBe(ofNested);
        throw ofTheTask;
      });
      const rejected = expect(outer)
        .rejects.toBe(ofTheTask)
        .then(() => settled.push('outer'));
      await until(() => lock.isAcquiredInThisProcess);
      expect(await isExcluded(theirs)).toBe(true);
      expect(settled).toEqual([]);
      gate.open();
      await Promise.all([nested, rejected]);
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('that first extends the lease is under the lock as well', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const sections = new Sections(fixture.oracle());
      let nested: Promise<unknown> = Promise.resolve();
      await lock.run(
        () => {
          nested = lock.run(
            async (lease) => {
              lease.assertHeld();
              expect(await isExcluded(theirs)).toBe(true);
              await sections.enter('nested');
              lease.assertHeld();
            },
            { ttl: 60_000 },
          );
          nested.catch(() => undefined); // checked below
        },
        { ttl: 30_000 },
      );
      await nested;
      expect(sections.entered).toEqual(['nested']);
      expect(await fixture.isInRedis('key')).toBe(false);
    });
  });
}
