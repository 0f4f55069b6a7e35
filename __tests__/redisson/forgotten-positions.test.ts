import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { PastPositions } from '../../lib/protocols/redisson/redisson-fair';
import { untilCollected } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { type LateReply, lateReply } from '../support/mock-redis';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms; Redisson's fairLockWaitTimeout, after which a position at the head ends by itself. */
const WAIT = 300_000;

// First: no registry has set a timer yet.
describe('The positions that a process gave up', () => {
  let time: FakeClock;

  beforeEach(() => {
    time = new FakeClock();
  });

  afterEach(() => time.restore());

  it('A process forgets a position that it gave up half a minute ago, with its lock, though no other follows', async () => {
    const positions = new PastPositions();
    const refer = () => {
      const lock = {};
      positions.add(lock, async () => lock);
      return new WeakRef(lock);
    };
    const first = refer();
    await time.advance(20_000);
    const second = refer();
    await time.advance(11_000);
    await untilCollected(first);
    expect(second.deref()).toBeDefined();
    await time.advance(20_000);
    await untilCollected(second);
    expect(time.pending).toBe(0);
  });

  it('A process remembers the last position of a lock that it gave up for half a minute of its own, whatever came before it', async () => {
    const positions = new PastPositions();
    const lock = {};
    const removals = [jest.fn(async () => 1), jest.fn(async () => 1)] as const;
    positions.add(lock, removals[0]);
    await time.advance(20_000);
    positions.add(lock, removals[1]);
    // The first one would be forgotten by now.
    await time.advance(29_000);
    positions.removeAgain();
    expect(removals.map((removal) => removal.mock.calls.length)).toEqual([0, 1]);
    positions.close();
  });

  it('The memory of positions that were given up has no timer left when it is closed', () => {
    const positions = new PastPositions();
    positions.add({}, async () => undefined);
    expect(time.keepingAlive).toBe(0);
    positions.close();
    expect(time.pending).toBe(0);
  });

  it('A position that was given up is removed once more after many reconnects, however many fail before Redis answers', async () => {
    const positions = new PastPositions();
    const removals: LateReply[] = [];
    const remove = jest.fn(() => {
      const removal = lateReply();
      removals.push(removal);
      return removal.promise;
    });
    positions.add({}, remove);
    for (let i = 0; i < 50; i++) {
      positions.removeAgain();
      await time.advance(20);
    }
    expect(remove).toHaveBeenCalledTimes(1);
    // It may have been the server before the last reconnect that answered.
    removals[0]?.resolve(1);
    await time.advance(20);
    expect(remove).toHaveBeenCalledTimes(2);
    removals[1]?.reject(new Error('Socket closed unexpectedly'));
    await time.advance(5_000);
    expect(remove).toHaveBeenCalledTimes(3);
    removals[2]?.resolve(1);
    await time.advance(5_000);
    expect(remove).toHaveBeenCalledTimes(3);
    positions.removeAgain();
    expect(remove).toHaveBeenCalledTimes(4);
    positions.close();
  });

  it('The removal of a position that was given up is tried for ten seconds after a reconnect', async () => {
    const positions = new PastPositions();
    const remove = jest.fn(() => Promise.reject(new Error('Socket closed unexpectedly')));
    positions.add({}, remove);
    positions.removeAgain();
    await time.advance(9_000);
    const before = remove.mock.calls.length;
    await time.advance(900);
    expect(remove.mock.calls.length).toBeGreaterThan(before);
    await time.advance(2_000);
    const { length } = remove.mock.calls;
    await time.advance(10_000);
    expect(remove).toHaveBeenCalledTimes(length);
    positions.close();
  });
});

// After a failover a server may not know that a position was given up. Here it is put back by hand.
describeReal('A redisson-fair lock on a server that has forgotten that a process left the queue', () => {
  let admin: TestClient;
  let client: TestClient;
  let registryKey: string;
  let mine: RedisLockRegistry;
  let queue: string;
  let timeouts: string;

  const process = (on: TestClient) => createRegistry(on, { lockType: 'redisson-fair', registryKey }).registry;
  const queued = () => admin.lRange(queue, 0, -1);

  /** Waits in the queue, has the lock for a moment, and is put back to the head of the queue. Resolves to the position. */
  async function leaveForgotten(): Promise<string> {
    const held = await process(admin).obtain('key').lock();
    const waiting = mine.obtain('key').lock();
    await until(async () => (await queued()).length === 1);
    const [position] = (await queued()) as [string];
    await held.unlock();
    await (await waiting).unlock();
    expect(await queued()).toEqual([]);
    await admin.rPush(queue, position);
    await admin.zAdd(timeouts, { score: Date.now() + WAIT, value: position });
    return position;
  }

  beforeEach(async () => {
    [admin, client] = await Promise.all([createRealClient(), createRealClient()]);
    registryKey = uniqueKey('forgotten');
    mine = process(client);
    queue = `redisson_lock_queue:{${registryKey}:key}`;
    timeouts = `redisson_lock_timeout:{${registryKey}:key}`;
  });

  it('A redisson-fair lock on a server that has forgotten that a process left the queue is acquired by that process again: its earlier position does not hold it up', async () => {
    await leaveForgotten();
    await (await mine.obtain('key').lock({ waitTime: 5_000 })).unlock();
    expect(await admin.exists([queue, timeouts])).toBe(0);
  });

  it('A redisson-fair lock on a server that has forgotten that a process left the queue takes the place at the end for a new position, and those behind the earlier one move up', async () => {
    await leaveForgotten();
    const name = `${registryKey}:key`;
    await admin.hSet(name, 'another process:1', '1');
    const other = process(admin).obtain('key').lock();
    await until(async () => (await queued()).length === 2);
    const [, behind = ''] = await queued();
    const score = Number(await admin.zScore(timeouts, behind));
    const again = mine.obtain('key').lock();
    await until(async () => (await queued())[0] === behind);
    expect(await queued()).toEqual([behind, expect.stringContaining(mine.id)]);
    expect(await admin.zScore(timeouts, behind)).toBe(score - WAIT);
    await admin.del(name);
    await (await other).unlock();
    await (await again).unlock();
    expect(await admin.exists([queue, timeouts])).toBe(0);
  });

  it('P2: is acquired by others as soon as the connection of that process was made again', async () => {
    const position = await leaveForgotten();
    const other = process(admin).obtain('key').lock({ waitTime: 20_000 });
    await until(async () => (await queued()).length === 2);
    expect((await queued())[0]).toBe(position);
    await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(await client.clientId())]);
    await (await other).unlock();
    expect(await admin.exists([queue, timeouts])).toBe(0);
  });

  it('A redisson-fair lock on a server that has forgotten that a process left the queue is released by its holder first, when a connection is made again meanwhile', async () => {
    const held = await process(admin).obtain('key').lock();
    const waiting = mine.obtain('key').lock();
    await until(async () => (await queued()).length === 1);
    await held.unlock();
    const [lease, another] = await Promise.all([waiting, mine.obtain('another').lock()]);
    // The script for one lock is known to the server, and that for two is not: it is sent twice.
    await admin.scriptFlush();
    await mine.run('a third', () => undefined);
    const unlocked = Promise.all([lease.unlock(), another.unlock()]);
    await new Promise(setImmediate);
    client.emit('ready');
    await unlocked;
    expect(await admin.exists([queue, timeouts])).toBe(0);
  });

  it('A redisson-fair lock on a server that has forgotten that a process left the queue keeps a position that is waited for, when the connection of its process was made again', async () => {
    await leaveForgotten();
    const held = await mine.obtain('key').lock();
    const waiting = mine.obtain('key').lock();
    const other = process(admin).obtain('key').lock();
    await until(async () => (await queued()).length === 1);
    await held.unlock();
    const next = await other;
    await until(async () => (await queued()).length === 1);
    const before = await queued();
    await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(await client.clientId())]);
    // The position that is removed again was the one before it.
    await until(() => client.isReady);
    await mine.obtain('another').lock();
    expect(await queued()).toEqual(before);
    await next.unlock();
    await (await waiting).unlock();
    expect(await admin.exists([queue, timeouts])).toBe(0);
  });
});
