import { beforeAll, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry, elapsed } from '../support/test-registry';
import { until } from '../support/until';

const PATIENCE = { commandTimeout: 300, unavailableAfter: 500 };

/** ms; an error that is known at once does not wait for a deadline. */
const AT_ONCE = 400;

describePrivate.each(LOCK_TYPES)('An acquisition of a %s lock says why it failed', (lockType) => {
  let redis: PrivateRedis;
  let admin: TestClient;

  beforeAll(async () => {
    redis = await PrivateRedis.start();
    admin = await redis.connect();
  });

  const failureOf = (why: RegExp) => ({
    name: 'CannotAcquireLockError',
    key: 'key',
    message: expect.stringMatching(why),
  });

  it('by the last answer of a server that is read-only', async () => {
    const { registry } = createRegistry(await redis.connect(), { lockType, ...PATIENCE });
    await registry.run('key', () => undefined);
    await admin.replicaOf('127.0.0.1', 1);
    try {
      await expect(registry.obtain('key').lock()).rejects.toMatchObject(failureOf(/READONLY/));
      await expect(registry.obtain('key').lock({ waitTime: 200 })).rejects.toMatchObject(failureOf(/READONLY/));
    } finally {
      await admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    }
  });

  it('by the error of the socket, while the server cannot be reached', async () => {
    const proxy = await redis.proxy();
    const client = await connectTo(proxy.address);
    const { registry } = createRegistry(client, { lockType, ...PATIENCE });
    await registry.run('key', () => undefined);
    proxy.refuse();
    proxy.reset();
    await until(() => !client.isReady);
    await expect(registry.obtain('key').lock()).rejects.toMatchObject(failureOf(/ECONNREFUSED/));
    await expect(registry.obtain('key').lock({ waitTime: 200 })).rejects.toMatchObject(failureOf(/ECONNREFUSED/));
  });

  it('at once by the client that is offline and does not queue', async () => {
    const proxy = await redis.proxy();
    const client = await connectTo(proxy.address, { disableOfflineQueue: true });
    const { registry } = createRegistry(client, { lockType, ...PATIENCE });
    await registry.run('key', () => undefined);
    proxy.refuse();
    proxy.reset();
    await until(() => !client.isReady);
    await expect(registry.obtain('key').lock()).rejects.toMatchObject(failureOf(/offline|ECONNREFUSED/));
    const trying = registry.obtain('key').tryLock();
    const rejected = expect(trying).rejects.toMatchObject(failureOf(/offline|ECONNREFUSED/));
    expect(await elapsed(trying)).toBeLessThan(AT_ONCE);
    await rejected;
  });

  it('at once by the client that is closed', async () => {
    const client = await redis.connect();
    const { registry } = createRegistry(client, { lockType, ...PATIENCE });
    client.destroy();
    for (const acquire of [() => registry.obtain('key').lock(), () => registry.obtain('key').tryLock()]) {
      const acquiring = acquire();
      const rejected = expect(acquiring).rejects.toMatchObject(failureOf(/closed/));
      expect(await elapsed(acquiring)).toBeLessThan(AT_ONCE);
      await rejected;
    }
  });
});
