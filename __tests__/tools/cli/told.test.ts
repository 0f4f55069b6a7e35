import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { LockAskedError, type LockType, RedisLockRegistry } from '../../../lib';
import { Node } from '../../support/node';
import { describePrivate, installed } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { until } from '../../support/until';
import { ask } from './command';

describePrivate('redis-locks and the process of a holder', () => {
  const server = installed(() => Node.start());
  let client: TestClient;
  const registries: RedisLockRegistry[] = [];

  beforeEach(async () => {
    client = await server().admin();
    await client.flushAll();
  });
  afterEach(() => Promise.all(registries.splice(0).map((one) => one.close({ timeout: 0 }))));

  const env = () => ({ REDIS_URL: `redis://${server().address.host}:${server().address.port}` });

  /** A lease of "cart" of a registry that has an inbox. */
  const held = async (registryKey: string, lockType: LockType) => {
    const registry = new RedisLockRegistry(client, { registryKey, lockType, name: 'web-7', inbox: true });
    registries.push(registry);
    const lease = await registry.obtain('cart').lock();
    await until(async () => (await client.pubSubChannels(`*@${registry.id}*`)).length === 1);
    return lease;
  };

  it.each([
    ['spin', 'shop'],
    ['spin', 'shop:eu'],
    ['redisson', 'shop:eu'],
  ] as const)(
    'release tells that of a %s lock of the registryKey "%s", which is not given',
    async (type, registryKey) => {
      const lease = await held(registryKey, type);
      const released = await ask(['release', `${registryKey}:cart`, '--yes'], env());
      expect(released).toMatchObject({
        exitCode: 0,
        stdout: `Released "${registryKey}:cart", held by web-7. Its process was told.\n`,
      });
      await until(() => lease.signal.aborted);
      expect(lease.signal.reason).toMatchObject({ reason: 'expired', by: expect.stringMatching(/.+/) });
    },
  );

  it('ask takes nothing, and its holder reads who asks, and why', async () => {
    const lease = await held('shop:eu', 'spin');
    void lease.asked;
    const words = ['ask', 'shop:eu:cart', '--why', 'deploy of 12:00', '--name', 'anna'];
    expect(await ask(words, env())).toMatchObject({
      exitCode: 0,
      stdout: 'Asked for "shop:eu:cart", held by web-7. Its process was told.\n',
    });
    await until(() => lease.asked.aborted);
    expect(lease.asked.reason).toBeInstanceOf(LockAskedError);
    expect(lease.asked.reason).toMatchObject({ by: 'anna', why: 'deploy of 12:00' });
    lease.assertHeld();
  });

  it('ask ends with 75 where the process of the holder hears nothing, and with 66 where nobody holds the lock', async () => {
    const registry = new RedisLockRegistry(client, { registryKey: 'shop', name: 'web-8' });
    registries.push(registry);
    const lease = await registry.obtain('cart').lock();
    expect(await ask(['ask', 'cart', '--registry-key', 'shop'], env())).toMatchObject({
      exitCode: 75,
      stdout: 'Asked for "shop:cart", held by web-8. Its process could not be told.\n',
    });
    const json = await ask(['ask', 'cart', '--json'], env());
    expect(JSON.parse(json.stdout)).toMatchObject({ lock: 'shop:cart', holder: 'web-8', told: false });
    await lease.unlock();
    expect((await ask(['ask', 'cart'], env())).exitCode).toBe(66);
  });
});
