import { beforeEach, expect, it } from '@jest/globals';
import { type LockOptions, LockTimeoutError, type RedisLockRegistry } from '../../../lib';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry } from '../../support/proxied-registry';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** ms; Redisson's fairLockWaitTimeout, after which a position at the head ends by itself. */
const WAIT = 300_000;

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

  async function putBack(position: string): Promise<void> {
    expect(await queued()).toEqual([]);
    await admin.rPush(queue, position);
    await admin.zAdd(timeouts, { score: Date.now() + WAIT, value: position });
  }

  /** Waits in the queue, has the lock for a moment, and is put back to the head of the queue. Resolves to the position. */
  async function leaveForgotten(options?: LockOptions): Promise<string> {
    const held = await process(admin).obtain('key').lock();
    const waiting = mine.obtain('key').lock(options);
    await until(async () => (await queued()).length === 1);
    const [position] = (await queued()) as [string];
    await held.unlock();
    await (await waiting).unlock();
    await putBack(position);
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

  it.each([
    ['unlocked it', {}],
    ['unlocked it before its minHold ended', { minHold: 100 }],
  ])(
    'P2: is acquired by others as soon as the connection of that process, which %s, was made again',
    async (_, options) => {
      const position = await leaveForgotten(options);
      const other = process(admin).obtain('key').lock({ waitTime: 20_000 });
      await until(async () => (await queued()).length === 2);
      expect((await queued())[0]).toBe(position);
      await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(await client.clientId())]);
      await (await other).unlock();
      expect(await admin.exists([queue, timeouts])).toBe(0);
    },
  );

  it('A redisson-fair lock on a server that has forgotten that a caller gave up is acquired by others as soon as the connection of its process was made again (P2)', async () => {
    const held = await process(admin).obtain('key').lock();
    const givesUp = expect(mine.obtain('key').lock({ waitTime: 300 })).rejects.toThrow(LockTimeoutError);
    await until(async () => (await queued()).length === 1);
    const [position] = (await queued()) as [string];
    await givesUp;
    await until(async () => (await queued()).length === 0);
    await putBack(position);
    await held.unlock();
    const other = process(admin).obtain('key').lock({ waitTime: 20_000 });
    await until(async () => (await queued()).length === 2);
    await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(await client.clientId())]);
    await (await other).unlock();
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

describePrivate('The position of a redisson-fair lock that an attempt takes which was lost with its connection', () => {
  const redis = PrivateRedis.install();

  it.each([0, 30_000])('P2: is removed in the background after an unlock with a minHold of %i ms', async (minHold) => {
    const { registry, registryKey, commands } = await createProxiedRegistry(redis, { lockType: 'redisson-fair' });
    const queue = `redisson_lock_queue:{${registryKey}:key}`;
    const held = await createRegistry(redis.admin, { lockType: 'redisson-fair', registryKey })
      .registry.obtain('key')
      .lock();
    const waiting = registry.obtain('key').lock({ minHold });
    await until(async () => (await redis.admin.lLen(queue)) === 1);
    const position = (await redis.admin.lIndex(queue, 0)) as string;
    await commands.loseRequest();
    await held.unlock();
    const lease = await waiting;
    // What the network has kept arrives.
    await redis.admin.zAdd(`redisson_lock_timeout:{${registryKey}:key}`, { score: Date.now() + WAIT, value: position });
    await redis.admin.rPush(queue, position);
    await lease.unlock();
    await until(async () => (await redis.admin.lLen(queue)) === 0);
    expect((await registry.obtain('key').inspect()).held).toBe(minHold > 0);
  });
});
