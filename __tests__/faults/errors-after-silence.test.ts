import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { DISTINCT_TYPES } from '../support/lock-types';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TIMEOUTS = { commandTimeout: 500, unavailableAfter: 1_000 };

describePrivate.each(DISTINCT_TYPES)('An acquisition of a %s lock says why it failed', (lockType) => {
  const redis = PrivateRedis.install();

  const failureOf = (why: RegExp) => ({
    name: 'CannotAcquireLockError',
    key: 'key',
    message: expect.stringMatching(why),
  });

  it('An acquisition says why it failed by the error of the socket, while the server cannot be reached', async () => {
    const proxy = await redis.proxy();
    const client = await connectTo(proxy.address);
    const { registry } = createRegistry(client, { lockType, ...TIMEOUTS });
    await registry.run('key', () => undefined);
    proxy.refuse();
    proxy.reset();
    await until(() => !client.isReady);
    await expect(registry.obtain('key').lock()).rejects.toMatchObject(failureOf(/ECONNREFUSED/));
    await expect(registry.obtain('key').lock({ waitTime: 200 })).rejects.toMatchObject(failureOf(/ECONNREFUSED/));
  });

  it('An acquisition says why it failed also to a caller behind another one of its process: silence and refusals are no contention', async () => {
    const proxy = await redis.proxy();
    const timeouts = { commandTimeout: 300, unavailableAfter: 5_000 };
    const { registry } = createRegistry(await connectTo(proxy.address), { lockType, ...timeouts });
    await registry.run('key', () => undefined);
    const lock = registry.obtain('key');
    const expectBehind = async (why: RegExp) => {
      const ahead = new AbortController();
      const waiting = expect(lock.lock({ signal: ahead.signal })).rejects.toThrow('given up');
      await sleep(50);
      await expect(lock.tryLock({ waitTime: 100 })).rejects.toMatchObject(failureOf(why));
      await expect(lock.lock({ waitTime: 100 })).rejects.toMatchObject(failureOf(why));
      await expect(lock.tryLock()).rejects.toMatchObject(failureOf(why));
      ahead.abort(new Error('given up'));
      await waiting;
    };
    await redis.admin.replicaOf('127.0.0.1', 1);
    try {
      await expectBehind(/READONLY/);
    } finally {
      await redis.admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    }
    await registry.run('key', () => undefined);
    proxy.blackHole = true;
    await expectBehind(/has not answered|did not answer/);
    proxy.reset();
  });
});
