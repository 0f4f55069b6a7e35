import { expect, it } from '@jest/globals';
import type { RedisClient } from '../../lib';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import { RedisFixture } from './redis-fixture';

const lockTypes = ['spin', 'pub-sub'] as const;

describePrivate.each(lockTypes)('A %s lock that is handed over', (lockType) => {
  const fixture = RedisFixture.install();

  const openLock = async (client: RedisClient) => {
    const { registry, warnings } = fixture.registry(client, { lockType, idleBetweenTries: 20, fencing: true });
    // Loads the scripts into the server.
    await Promise.all([1, 2].map(() => registry.run('warm up', () => undefined)));
    return { lock: registry.obtain('key'), warnings };
  };

  it.each(['expired', 'stolen'] as const)(
    'after it was lost (%s): unlock reports the loss, and the next caller acquires it',
    async (reason) => {
      const { lock, warnings } = await openLock(await fixture.connect());
      const { lock: name } = fixture.namesOf('key');
      const lost = await lock.lock();
      const waiting = lock.lock();
      if (reason === 'expired') await fixture.admin.del(name);
      else await fixture.admin.set(name, 'another', { PX: 60_000 });
      await expect(lost.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason });
      expect(lost.signal.aborted).toBe(true);
      if (reason === 'stolen') {
        expect(await fixture.admin.get(name)).toBe('another');
        await fixture.releaseAsOther('key');
      }
      const lease = await waiting;
      lease.assertHeld();
      expect(lease.fencingToken).toBeGreaterThan(lost.fencingToken as number);
      await lease.unlock();
      expect(await fixture.isHeld('key')).toBe(false);
      expect(warnings).toEqual([]);
    },
  );
});

describePrivate.each(lockTypes)('A %s lock on a server without UNLINK', (lockType) => {
  const fixture = RedisFixture.install('--rename-command', 'UNLINK', '');

  it('is handed over, released at the end of a time slice, and released', async () => {
    const processes = await Promise.all(
      [1, 2].map(() => fixture.process({ lockType, idleBetweenTries: 10, handOver: 5 })),
    );
    const oracle = new Oracle(fixture.admin);
    const acquisitions = new Map<number, number>();
    await Promise.all(
      processes.flatMap(({ registry }, process) =>
        Array.from({ length: 3 }, async () => {
          for (let round = 0; round < 10; round++) {
            await registry.run('key', () => oracle.section(() => undefined));
            acquisitions.set(process, (acquisitions.get(process) ?? 0) + 1);
          }
        }),
      ),
    );
    expect([...acquisitions.values()]).toEqual([30, 30]);
    expect(oracle.violations).toEqual([]);
    expect(await fixture.isHeld('key')).toBe(false);
    expect(await fixture.calls('del')).toBeGreaterThan(0);
    for (const { warnings } of processes) expect(warnings).toEqual([]);
  });
});
