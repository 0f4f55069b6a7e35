import { expect, it } from '@jest/globals';
import type { RedisClient } from '../../lib';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import { Stage } from './stage';

const lockTypes = ['spin', 'pub-sub'] as const;

describePrivate.each(lockTypes)('A %s lock that is handed over', (lockType) => {
  const stage = Stage.set();

  const warmOn = async (client: RedisClient) => {
    const { registry, warnings } = stage.registry(client, { lockType, idleBetweenTries: 20, fencing: true });
    // From now on the server knows the scripts.
    await Promise.all([1, 2].map(() => registry.run('warm up', () => undefined)));
    return { lock: registry.obtain('key'), warnings };
  };

  it.each(['expired', 'stolen'] as const)(
    'after it was lost (%s): its holder hears of it, and the next one acquires it by itself',
    async (reason) => {
      const { lock, warnings } = await warmOn(await stage.connect());
      const { lock: name } = stage.namesOf('key');
      const lost = await lock.lock();
      const waiting = lock.lock();
      if (reason === 'expired') await stage.admin.del(name);
      else await stage.admin.set(name, 'another', { PX: 60_000 });
      await expect(lost.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason });
      expect(lost.signal.aborted).toBe(true);
      if (reason === 'stolen') {
        expect(await stage.admin.get(name)).toBe('another');
        await stage.giveBack('key');
      }
      const lease = await waiting;
      lease.assertHeld();
      expect(lease.fencingToken).toBeGreaterThan(lost.fencingToken as number);
      await lease.unlock();
      expect(await stage.isHeld('key')).toBe(false);
      expect(warnings).toEqual([]);
    },
  );

  it('by a script that is executed twice is handed over once', async () => {
    const client = await stage.connect();
    let repeats = 0;
    const repeating: RedisClient = {
      eval: (script, options) => client.eval(script, options),
      async evalSha(sha1, options) {
        if (repeats-- > 0) await client.evalSha(sha1, options);
        return client.evalSha(sha1, options);
      },
    };
    const { lock, warnings } = await warmOn(repeating);
    const first = await lock.lock();
    const waiting = lock.lock({ ttl: 5_000 });
    repeats = 1;
    await first.unlock();
    expect(repeats).toBe(0);
    const second = await waiting;
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as number);
    const { lock: name } = stage.namesOf('key');
    expect(await stage.admin.get(`{${name}}:fence`)).toBe(String(second.fencingToken));
    expect(await stage.admin.pTTL(name)).toBeLessThanOrEqual(5_000);
    await second.unlock();
    expect(await stage.isHeld('key')).toBe(false);
    expect(warnings).toEqual([]);
  });

  it('is handed over, and given back, also when the server is out of memory, where nobody can acquire', async () => {
    const { lock, warnings } = await warmOn(await stage.connect());
    const other = await warmOn(await stage.connect());
    const first = await lock.lock();
    const waiting = lock.lock();
    await stage.admin.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: '1' });
    try {
      const { registry } = await stage.process({ lockType });
      await expect(registry.obtain('elsewhere').lock()).rejects.toThrow(/OOM/);
      await first.unlock();
      const second = await waiting;
      second.assertHeld();
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken as number);
      await second.renew();
      await second.unlock();
      await expect(other.lock.tryLock()).rejects.toThrow(/OOM/);
      expect(await stage.isHeld('key')).toBe(false);
    } finally {
      await stage.admin.configSet('maxmemory', '0');
    }
    expect(warnings).toEqual([]);
  });
});

describePrivate.each(lockTypes)('A %s lock on a server without UNLINK', (lockType) => {
  const stage = Stage.set('--rename-command', 'UNLINK', '');

  it('is handed over, given up at the end of a slice, and given back', async () => {
    const processes = await Promise.all(
      [1, 2].map(() => stage.process({ lockType, idleBetweenTries: 10, handOver: 5 })),
    );
    const oracle = new Oracle(stage.admin);
    const turns = new Map<number, number>();
    await Promise.all(
      processes.flatMap(({ registry }, process) =>
        Array.from({ length: 3 }, async () => {
          for (let round = 0; round < 10; round++) {
            await registry.run('key', () => oracle.section(() => undefined));
            turns.set(process, (turns.get(process) ?? 0) + 1);
          }
        }),
      ),
    );
    expect([...turns.values()]).toEqual([30, 30]);
    expect(oracle.violations).toEqual([]);
    expect(await stage.isHeld('key')).toBe(false);
    expect(await stage.calls('del')).toBeGreaterThan(0);
    for (const { warnings } of processes) expect(warnings).toEqual([]);
  });
});
