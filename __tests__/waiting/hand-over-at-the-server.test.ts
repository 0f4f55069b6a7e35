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

  it('by a script that is executed twice has one new token', async () => {
    const client = await fixture.connect();
    let repeats = 0;
    const repeating: RedisClient = {
      eval: (script, options) => client.eval(script, options),
      async evalSha(sha1, options) {
        if (repeats-- > 0) await client.evalSha(sha1, options);
        return client.evalSha(sha1, options);
      },
    };
    const { lock, warnings } = await openLock(repeating);
    const first = await lock.lock();
    const waiting = lock.lock({ ttl: 5_000 });
    repeats = 1;
    await first.unlock();
    expect(repeats).toBe(0);
    const second = await waiting;
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as number);
    const { lock: name } = fixture.namesOf('key');
    expect(await fixture.admin.get(`{${name}}:fence`)).toBe(String(second.fencingToken));
    expect(second.remaining).toBeLessThanOrEqual(5_000);
    await second.unlock();
    expect(await fixture.isHeld('key')).toBe(false);
    expect(warnings).toEqual([]);
  });

  it('is handed over and released also when the server is out of memory and refuses acquisitions', async () => {
    const { lock, warnings } = await openLock(await fixture.connect());
    const other = await openLock(await fixture.connect());
    const first = await lock.lock();
    const waiting = lock.lock();
    await fixture.admin.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: '1' });
    try {
      const { registry } = await fixture.process({ lockType });
      await expect(registry.obtain('elsewhere').lock()).rejects.toThrow(/OOM/);
      await first.unlock();
      const second = await waiting;
      second.assertHeld();
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken as number);
      await second.renew();
      await second.unlock();
      await expect(other.lock.tryLock()).rejects.toThrow(/OOM/);
      expect(await fixture.isHeld('key')).toBe(false);
    } finally {
      await fixture.admin.configSet('maxmemory', '0');
    }
    expect(warnings).toEqual([]);
  });
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
