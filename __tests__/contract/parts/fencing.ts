import { expect, it } from '@jest/globals';
import type { LockFixture } from '../lock-fixture';

export function fencing(fixture: LockFixture): void {
  it('Fencing tokens exist only with the option `fencing`', async () => {
    const lease = await fixture.registry().obtain('key').lock();
    expect(lease.fencingToken).toBeUndefined();
    await lease.unlock();
  });

  it('Fencing tokens rise with every acquisition, by any process and any method (P10)', async () => {
    const registries = [fixture.registry({ fencing: true }), fixture.otherRegistry({ fencing: true })] as const;
    const oracle = fixture.oracle();
    for (let round = 0; round < 5; round++) {
      for (const registry of registries) {
        await registry.run('key', (lease) => oracle.write(lease.fencingToken));
        const lease = await registry.obtain('key').tryLock();
        oracle.write(lease?.fencingToken);
        expect(Number.isSafeInteger(lease?.fencingToken)).toBe(true);
        await lease?.unlock();
      }
    }
    expect(oracle.violations).toEqual([]);
  });

  it('Fencing tokens rise after an expiry, and under contention (P10)', async () => {
    const [mine, theirs] = [fixture.registry({ fencing: true }), fixture.otherRegistry({ fencing: true })];
    const oracle = fixture.oracle();
    oracle.write((await mine.obtain('key').lock({ ttl: 200 })).fencingToken);
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        (i % 2 ? mine : theirs).run('key', ({ fencingToken }) => oracle.write(fencingToken)),
      ),
    );
    expect(oracle.violations).toEqual([]);
  });

  it('Fencing tokens rise from caller to caller of a process, and above those when another process has the lock (P10)', async () => {
    const [mine, theirs] = [fixture.registry({ fencing: true }), fixture.otherRegistry({ fencing: true })];
    const oracle = fixture.oracle();
    for (let round = 0; round < 2; round++) {
      const first = await mine.obtain('key').lock();
      const others = Array.from({ length: 20 }, () =>
        mine.run('key', ({ fencingToken }) => oracle.write(fencingToken)),
      );
      oracle.write(first.fencingToken);
      await first.unlock();
      await Promise.all(others);
      await theirs.run('key', ({ fencingToken }) => oracle.write(fencingToken));
    }
    expect(oracle.violations).toEqual([]);
  });

  it('Fencing tokens do not change by a renewal or by a refused attempt', async () => {
    const lease = await fixture.registry({ fencing: true }).obtain('key').lock({ ttl: 5_000 });
    const { fencingToken } = lease;
    expect(await fixture.otherRegistry({ fencing: true }).obtain('key').tryLock()).toBeNull();
    await lease.renew(10_000);
    expect(lease.fencingToken).toBe(fencingToken);
    await lease.unlock();
  });
}
