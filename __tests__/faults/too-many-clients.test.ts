import { expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

describePrivate.each(CLIENT_KINDS)('%s is one too many for its server when it reconnects', (kind) => {
  const redis = PrivateRedis.install();

  it('P1: a call that waits goes on when there is room again', async () => {
    const client = await clientKinds[kind](redis.address);
    const { registry, nameOf } = createRegistry(client, { unavailableAfter: 60_000, idleBetweenTries: 50 });
    await (await registry.obtain('other').lock()).unlock();
    await redis.admin.set(nameOf('key'), 'another', { PX: 60_000 });
    let settled = false;
    const waiting = registry.obtain('key').lock({ waitTime: 60_000 });
    void waiting.then(
      () => (settled = true),
      () => (settled = true),
    );
    const rejected = async () => Number(/rejected_connections:(\d+)/.exec(await redis.admin.info('stats'))?.[1]);
    const before = await rejected();
    await redis.admin.configSet('maxclients', '1');
    await redis.admin.sendCommand(['CLIENT', 'KILL', 'SKIPME', 'yes', 'TYPE', 'normal']);
    await redis.admin.sendCommand(['CLIENT', 'KILL', 'SKIPME', 'yes', 'TYPE', 'pubsub']);
    // It has met the limit many times, and its commands too.
    await until(async () => (await rejected()) >= before + 20);
    await redis.admin.del(nameOf('key'));
    await until(async () => (await rejected()) >= before + 40);
    expect(settled).toBe(false);
    await redis.admin.configSet('maxclients', '1000');
    await (await waiting).unlock();
  });
});
