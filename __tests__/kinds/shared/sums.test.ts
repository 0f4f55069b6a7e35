import { expect, it } from '@jest/globals';
import type { Lease } from '../../../lib';
import { describeReal } from '../../support/redis';
import { until } from '../../support/until';
import { ownerOf, SharedFixture } from './shared-fixture';

const PERMITS = 300;

describeReal('The sums that a semaphore keeps with its leases', () => {
  const fixture = SharedFixture.install();
  const lockName = () => `${fixture.registryKey}:key`;
  const sums = async () => {
    const [held, leases] = await fixture.client.zRangeWithScores(lockName(), 0, 1);
    return { [held?.value ?? '']: -(held?.score ?? 0), [leases?.value ?? '']: -(leases?.score ?? 0) };
  };

  /** What scripts run in Redis about the locks meanwhile. */
  const commandsOf = async (during: () => Promise<unknown>) =>
    (await fixture.commandsOf(during)).filter(
      ({ source, args }) => source === 'lua' && args[0]?.includes(fixture.registryKey),
    );

  it('are right with permits that are taken, given back, kept, passed on, ended by force, and by their ttl', async () => {
    const [one, other] = await fixture.pair();
    const [here, there] = [one.semaphore('key', { permits: 9 }), other.semaphore('key', { permits: 9 })];
    const expectSums = async (held: number, leases: number) => {
      expect(await sums()).toEqual({ 'semaphore:held': held, 'semaphore:leases': leases });
      expect(await here.inspect()).toMatchObject({ holders: held });
    };
    const three = await here.lock({ permits: 3 });
    const two = await there.lock({ permits: 2 });
    await expectSums(5, 2);
    await three.unlock();
    await expectSums(2, 1);
    const kept = await here.lock({ permits: 4, ttl: 60_000, minHold: 30_000 });
    await kept.unlock();
    await expectSums(6, 2);
    const waiting = there.lock({ permits: 4, waitTime: 20_000 });
    await fixture.queued('key', 1);
    await two.unlock(); // by one script, which lets the next caller in
    const four = await waiting;
    await expectSums(8, 2);
    await here.lock({ ttl: 50 });
    await expectSums(9, 3);
    await until(async () => (await here.inspect())?.holders === 8);
    const commands = await commandsOf(async () => expect(await here.tryLock({ permits: 2 })).toBeNull());
    await expectSums(8, 2);
    expect(commands.map(({ args }) => args.slice(1, 3))).not.toContainEqual(['0', '-1']);
    await there.forceUnlock();
    await until(() => four.signal.aborted);
    expect(await fixture.keys()).not.toContain(lockName());
    await (await here.lock({ permits: 9 })).unlock();
    expect(await fixture.keys()).not.toContain(lockName());
  });

  it('spare a lock and an unlock the reading of all leases, however many there are', async () => {
    const registry = await fixture.registry();
    const semaphore = registry.semaphore('key', { permits: PERMITS });
    const first = await semaphore.lock({ permits: 2 });
    const turn = () => commandsOf(async () => (await semaphore.lock()).unlock());
    const beside = (await turn()).map(({ name, args }) => [name, ...args.slice(1, 3)]);
    const leases = await Promise.all(Array.from({ length: PERMITS - 3 }, () => semaphore.lock()));
    const besideMany = (await turn()).map(({ name, args }) => [name, ...args.slice(1, 3)]);
    expect(besideMany.map(([name]) => name)).toEqual(beside.map(([name]) => name));
    expect(besideMany).not.toContainEqual(['ZRANGE', '0', '-1']);
    for (const lease of [first, ...leases]) await lease.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  it('keep nobody out, of either kind, when all leases have ended', async () => {
    const registry = await fixture.registry();
    const ended = [
      { score: -3, value: 'semaphore:held' },
      { score: -1, value: 'semaphore:leases' },
      { score: 1, value: 'semaphore:nobody:1*3' },
    ];
    for (const lock of [registry.semaphore('key', { permits: 3 }), registry.readWrite('key').read]) {
      await fixture.client.zAdd(lockName(), ended);
      const lease = await lock.lock({ waitTime: 5_000 });
      expect(await fixture.members('key')).toEqual([expect.stringContaining(ownerOf(lease))]);
      expect(await fixture.client.pTTL(lockName())).toBeGreaterThan(0);
      await lease.unlock();
    }
    expect(await fixture.keys()).toEqual([]);
  });

  it('are written before the expiry of the key, which may end it', async () => {
    const semaphore = (await fixture.registry()).semaphore('key', { permits: 3 });
    const commands = await commandsOf(async () => {
      const kept = await semaphore.lock({ ttl: 60_000, minHold: 30_000 });
      await kept.unlock();
    });
    const names = commands.map(({ name }) => name).filter((name) => ['ZADD', 'PEXPIREAT'].includes(name));
    // First one that writes nothing, to see if it may; the lease, the sums; what is kept has the same sums.
    expect(names).toEqual(['ZADD', 'ZADD', 'ZADD', 'PEXPIREAT', 'ZADD', 'PEXPIREAT']);
  });

  // What the scripts of a version before do. `free`: how many permits there are then.
  it.each<[string, (light: Lease, now: number) => Promise<unknown>, free: number]>([
    [
      'lets a heavier caller in for a lighter one',
      async (light, now) => {
        await fixture.client.zRemRangeByScore(lockName(), '-inf', now);
        await fixture.client.zRem(lockName(), `semaphore:${ownerOf(light)}`);
        await fixture.client.zAdd(lockName(), { score: now + 60_000, value: 'semaphore:older:1*3' });
      },
      2,
    ],
    [
      'releases',
      async (light, now) => {
        await fixture.client.zRemRangeByScore(lockName(), '-inf', now);
        await fixture.client.zRem(lockName(), `semaphore:${ownerOf(light)}`);
      },
      5,
    ],
    [
      'finds when it renews that its lease has ended',
      async (light) => fixture.client.zRem(lockName(), `semaphore:${ownerOf(light)}`),
      5,
    ],
  ])('are made anew after a process that does not know of them %s', async (_what, change, free) => {
    const semaphore = (await fixture.registry()).semaphore('key', { permits: 6 });
    const [staying, light] = [await semaphore.lock(), await semaphore.lock()];
    await change(light, Date.now());
    expect(await semaphore.tryLock({ permits: free + 1 })).toBeNull();
    const rest = (await semaphore.tryLock({ permits: free })) as Lease;
    expect(rest).not.toBeNull();
    for (const lease of [staying, rest]) await lease.unlock();
  });
});
