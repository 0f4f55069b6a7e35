import { afterEach, expect, it } from '@jest/globals';
import { RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import { type BunInternals, fromBun } from '../../../lib/clients/bun';
import { FaultyProxy } from '../../../support/proxy';
import { createRealClient, uniqueKey } from '../../support/redis';
import { until } from '../../support/until';

/* Runs under Bun: `npm run test:bun`. */

declare const Bun: { RedisClient: new (url: string) => BunInternals };

const URL = process.env.TEST_REDIS_URL as string;
const ended: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** A registry on a connection of its own, as of another process. A waiter that only polls would take minutes. */
function registryOf(registryKey: string, options: Partial<RedisLockRegistryOptions> = {}): RedisLockRegistry {
  const redis = new Bun.RedisClient(URL);
  const registry = new RedisLockRegistry(fromBun(redis), {
    registryKey,
    lockType: 'pub-sub',
    idleBetweenTries: 60_000,
    handOver: 0,
    ...options,
  });
  ended.push(async () => {
    await registry.close({ timeout: 0 });
    redis.close();
  });
  return registry;
}

it('A waiter is woken by the message of a release, also after its connection for messages was cut', async () => {
  const registryKey = uniqueKey();
  const holders = registryOf(registryKey);
  const waiters = registryOf(registryKey);
  const admin = await createRealClient();
  const lease = await holders.obtain('42').lock();
  const waiting = waiters.obtain('42').lock();
  const channels = () => admin.pubSubChannels(`*${registryKey}*`);
  await until(async () => (await channels()).length > 0);
  const [channel = ''] = await channels();
  await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
  await until(async () => (await admin.pubSubNumSub(channel))[channel] === 1);
  await lease.unlock();
  const next = await waiting;
  expect(next.remaining).toBeGreaterThan(0);
  await next.unlock();
}, 30_000);

it('No connection for messages is left when nobody waits', async () => {
  const registryKey = uniqueKey();
  const holders = registryOf(registryKey);
  const waiters = registryOf(registryKey);
  const admin = await createRealClient();
  const connections = async () =>
    String(await admin.sendCommand(['CLIENT', 'LIST']))
      .trim()
      .split('\n').length;
  await Promise.all([holders.obtain('41').tryLock(), waiters.obtain('40').tryLock()]);
  const before = await connections();
  const lease = await holders.obtain('42').lock();
  const waiting = waiters.obtain('42').lock();
  await until(async () => (await admin.pubSubChannels(`*${registryKey}*`)).length === 1);
  expect(await connections()).toBe(before + 1);
  await lease.unlock();
  await (await waiting).unlock();
  await until(async () => (await connections()) === before, { within: 20_000 });
}, 60_000);

it('P1: single attempts fail soon while the client has no connection, also one that is not the first', async () => {
  const { hostname: host, port } = new globalThis.URL(URL);
  const proxy = await FaultyProxy.start({ host, port: Number(port) });
  const redis = new Bun.RedisClient(`redis://${proxy.address.host}:${proxy.address.port}`);
  const registry = new RedisLockRegistry(fromBun(redis), { registryKey: uniqueKey(), commandTimeout: 20_000 });
  ended.push(async () => {
    await registry.close({ timeout: 0 });
    redis.close();
    proxy.stop();
  });
  const lock = registry.obtain('42');
  expect(await lock.tryRun(() => 'ran')).toEqual({ ran: true, value: 'ran' });
  proxy.refuse();
  proxy.reset();
  await until(() => !redis.connected);
  for (let i = 0; i < 3; i++) {
    const startedAt = performance.now();
    await expect(lock.tryLock()).rejects.toThrow('the client has no connection');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  }
  await proxy.accept();
  await until(async () => (await lock.tryRun(() => 'ran').catch(() => undefined))?.ran, { within: 20_000 });
}, 30_000);
