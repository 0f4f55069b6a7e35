import { beforeEach, expect, it } from '@jest/globals';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';
import { skip, TestedPage } from './tested-page';

/** An owner value of `fair`, of a hold that began some ms ago. */
const ownerOf = (name: string, ago: number) => `${name}:${'x'.repeat(22)}:1@${microseconds(ago)}`;
const microseconds = (ago: number) => Math.round((Date.now() - ago) * 1_000);

describePrivate('What is urgent comes first on the page', () => {
  const tested = new TestedPage();
  let registryKey = '';
  const view = () => tested.view();
  const ofLock = async (key: string) => (await view()).rows.find(({ lock }) => lock === `${registryKey}:${key}`);

  beforeEach(() => {
    registryKey = `urgent-${Math.random()}`;
    tested.create({ registryKey });
  });

  async function hold(key: string, ago: number, waits: readonly number[] = [], owner = ownerOf('web-1', ago)) {
    const lock = `${registryKey}:${key}`;
    await tested.client.set(lock, owner, { PX: 600_000 });
    const waiters = waits.map((wait, i) => ({ score: microseconds(wait), value: ownerOf(`web-${i + 2}`, wait) }));
    if (waiters.length > 0) await tested.client.zAdd(`{${lock}}:queue`, waiters);
  }

  it('by waiters times age, and by name what is young', async () => {
    await hold('a', 5_000);
    await hold('b', 5_000, [2_000]);
    await hold('c', 20_000, [15_000]);
    await hold('d', 12_000, [11_000, 9_000, 8_000]);
    await hold('e', 500_000);
    await hold('f', 3_000);
    const { rows } = await view();
    expect(rows.map(({ lock }) => lock.slice(registryKey.length + 1)).slice(0, 2)).toEqual(['d', 'c']);
    expect((await view()).counts.overdue).toBe(0);
  });

  it('and what may be data of an application comes last, however long it has been there', async () => {
    tested.create();
    const session = `${registryKey}:a-session`;
    await tested.client.set(session, '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', { PX: 600_000 });
    await hold('z', 1_000);
    await view();
    skip(60_000);
    const names = (await view()).rows.map(({ lock }) => lock).filter((lock) => lock.startsWith(registryKey));
    expect(names).toEqual([`${registryKey}:z`, session]);
  });

  it('with what is overdue before all: where somebody has waited for over 30 s', async () => {
    await hold('a', 40_000, [29_000, 29_000, 29_000]);
    await hold('b', 32_000, [31_000]);
    const { counts, rows } = await view();
    expect(rows.map(({ lock, isOverdue }) => [lock, isOverdue])).toEqual([
      [`${registryKey}:b`, true],
      [`${registryKey}:a`, false],
    ]);
    expect(rows[0]).toMatchObject({ isLong: false, isLeast: false, usual: null });
    expect(rows[0]?.longestWait).toBeGreaterThan(31_000);
    expect(counts.overdue).toBe(1);
  });

  it('and where a lock is held for ten times as long as is usual for it, and for over 10 s', async () => {
    for (const ago of [1_900, 2_000, 2_100]) {
      await hold('a', ago);
      expect(await ofLock('a')).toMatchObject({ usual: null, isLong: false });
      skip(1_000);
    }
    await hold('a', 18_000);
    const usual = (await ofLock('a'))?.usual ?? 0;
    expect([usual > 1_800, usual < 2_600]).toEqual([true, true]);
    expect(await ofLock('a')).toMatchObject({ isLong: false, isOverdue: false });
    skip(1_000);
    await hold('a', 60_000);
    expect(await ofLock('a')).toMatchObject({ isLong: true, isOverdue: true });
  });

  it('but a hold that began before the page first looked says nothing of what is usual', async () => {
    const ofNumber = (number: number) => hold('a', 0, [], `web-1:${'x'.repeat(22)}:${number}`);
    await ofNumber(1);
    await ofLock('a');
    skip(1_000);
    expect(await ofLock('a')).toMatchObject({ isOlder: true });
    for (const [i, usual] of [null, null, null, expect.any(Number)].entries()) {
      skip(1_000);
      await ofNumber(i + 2);
      expect(await ofLock('a')).toMatchObject({ usual });
    }
  });

  it('and a lock of Java is held by the same holder while others listen to its release, and while none does', async () => {
    tested.create();
    const lock = `${registryKey}:java`;
    const subscriber = await tested.redis.connect();
    const look = async () => {
      skip(1_000);
      return (await view()).rows.find((row) => row.lock === lock);
    };
    await look();
    await tested.client.set(lock, '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', { PX: 600_000 });
    for (let i = 0; i < 3; i++) {
      await subscriber.subscribe(`${registryKey}-channel:${lock}`, () => undefined);
      expect(await look()).toMatchObject({ isSure: true, usual: null });
      await look();
      await subscriber.unsubscribe();
      expect(await look()).toMatchObject({ isSure: false, usual: null });
    }
    expect((await view()).changes.filter((change) => change.lock === lock)).toHaveLength(1);
  });

  it('by the time for which waiters were seen with one holder, where Redis does not say how long they have waited', async () => {
    const channel = `${registryKey}-channel:${registryKey}:a`;
    await (await tested.redis.connect()).subscribe(channel, () => undefined);
    await hold('a', 0, [], `web-1:${'x'.repeat(22)}:3`);
    await ofLock('a');
    skip(60_000);
    // That may be the holder.
    expect(await ofLock('a')).toMatchObject({ waiting: 1, longestWait: null, isOverdue: false });
    await (await tested.redis.connect()).subscribe(channel, () => undefined);
    for (const owner of [1, 2, 1]) {
      await hold('a', 0, [], `web-1:${'x'.repeat(22)}:${owner}`);
      skip(1_000);
      expect(await ofLock('a')).toMatchObject({ waiting: 2, longestWait: null, isOverdue: false });
      skip(31_000);
      expect(await ofLock('a')).toMatchObject({ waiting: 2, isLeast: true, isOverdue: true });
    }
  });

  it('for each lock of Java by itself, though a process of Spring has one owner value for all that it holds', async () => {
    const ofSpring = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
    const look = (key: string) => {
      skip(5_000);
      return ofLock(key);
    };
    const wait = async (key: string) => {
      await hold(key, 0, [], ofSpring);
      for (let i = 0; i < 2; i++) {
        const channel = `${registryKey}-channel:${registryKey}:${key}`;
        await (await tested.redis.connect()).subscribe(channel, () => undefined);
      }
    };
    await wait('a');
    for (const usual of [null, null, null, expect.any(Number)]) {
      await look('a');
      await hold('b', 0, [], ofSpring);
      expect(await look('b')).toMatchObject({ usual });
      await look('a');
      await tested.client.del(`${registryKey}:b`);
    }
    expect(await look('a')).toMatchObject({ waiting: 2, isOverdue: true });
    await wait('c');
    expect(await look('c')).toMatchObject({ waiting: 2, longestWait: null, isOverdue: false });
  });

  it('and a process that has called a lock knows how long its own callers have waited', async () => {
    const created = await tested.held('a', { registryKey, lockType: 'spin' });
    expect((await view()).here).not.toBeNull();
    const waiting = created.registry.obtain('a').lock();
    skip(45_000);
    await until(async () => ((await ofLock('a'))?.longestWait ?? 0) > 30_000);
    expect(await ofLock('a')).toMatchObject({ isLeast: false, isOverdue: true });
    await created.lease.unlock();
    await (await waiting).unlock();
  });

  it('but a viewer calls none, and has nothing to say of its own process', async () => {
    await hold('a', 1_000);
    expect((await view()).here).toBeNull();
  });
});
