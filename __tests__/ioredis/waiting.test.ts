import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { fromIoredis, type Ioredis } from '../../lib/ioredis';
import { type ClusterServers, startCluster } from '../support/cluster';
import { type IoredisPackage, ioredisOptions, packages } from '../support/ioredis-packages';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { type TestClient, uniqueKey } from '../support/redis';
import { scriptsRun, untilQuiet } from '../support/server-load';
import { until } from '../support/until';

/** Longer than a test may take: a waiter that is not notified does not end. */
const NEVER = 600_000;

/** ms between two attempts of a waiter that is not notified. */
const IDLE = 20;

type NotifiedType = 'pub-sub' | 'fair' | 'redisson' | 'redisson-fair';

/** One process waits for another, through instances of their own. */
async function waitOnce(make: () => Ioredis, lockType: NotifiedType, admins: readonly TestClient[]): Promise<void> {
  const registryKey = uniqueKey('registry');
  const warnings: unknown[] = [];
  const instances = [make(), make()] as const;
  const [holders, waiters] = instances.map(
    (instance) =>
      new RedisLockRegistry(fromIoredis(instance), {
        registryKey,
        lockType,
        idleBetweenTries: NEVER / 10,
        commandTimeout: 60_000,
        expireAfter: NEVER,
        onWarning: (warning) => warnings.push(warning),
      }),
  ) as [RedisLockRegistry, RedisLockRegistry];
  for (const instance of instances) await until(() => instance.status === 'ready');
  const connections = async () =>
    (
      await Promise.all(admins.map(async (admin) => (await admin.clientList({ TYPE: 'PUBSUB' } as never)).length))
    ).join();
  const before = await connections();
  for (const key of ['one', 'two', 'three']) {
    const lease = await holders.obtain(key).lock();
    const waiting = waiters.run(key, () => 'entered');
    const channels = async () => {
      const lists = admins.flatMap((admin) => [
        admin.sendCommand(['PUBSUB', 'CHANNELS', `*${registryKey}*`]) as Promise<unknown[]>,
        admin.sendCommand(['PUBSUB', 'SHARDCHANNELS', `*${registryKey}*`]) as Promise<unknown[]>,
      ]);
      return (await Promise.all(lists)).flat().map(String);
    };
    await until(async () => (await channels()).some((channel) => channel.includes(key)));
    for (const admin of admins) await untilQuiet(admin);
    await lease.unlock();
    expect(await waiting).toBe('entered');
  }
  await Promise.all([holders.close(), waiters.close()]);
  await until(async () => (await connections()) === before);
  expect(warnings).toEqual([]);
  for (const instance of instances) instance.disconnect();
}

const each = packages.map((one): [string, IoredisPackage] => [one.name, one]);

describePrivate.each(each)('Waiting through %s', (_name, { single }) => {
  const redis = PrivateRedis.install();
  const make = () => single(ioredisOptions(redis.address));

  it.each(['pub-sub', 'fair', 'redisson', 'redisson-fair'] as const)('ends by a message: %s', (lockType) =>
    waitOnce(make, lockType, [redis.admin]),
  );

  it.each(['pub-sub', 'fair'] as const)('sends little while it waits: %s', async (lockType) => {
    const [first, second] = [make(), make()];
    const options = { registryKey: uniqueKey(), lockType, idleBetweenTries: IDLE, expireAfter: NEVER };
    const [holders, waiters] = [first, second].map((one) => new RedisLockRegistry(fromIoredis(one), options));
    const lease = await holders?.obtain('key').lock();
    const waiting = Array.from({ length: 20 }, () => waiters?.run('key', () => undefined));
    const scripts = () => scriptsRun(redis.admin);
    await until(async () => (await redis.admin.pubSubChannels(`*${options.registryKey}*`)).length > 0);
    await untilQuiet(redis.admin);
    const startedAt = performance.now();
    const before = await scripts();
    await new Promise((resolve) => setTimeout(resolve, 600));
    // Notified waiters poll every ten intervals, others every one.
    expect((await scripts()) - before).toBeLessThan((performance.now() - startedAt) / IDLE / 3);
    await lease?.unlock();
    await Promise.all(waiting);
    await Promise.all([holders?.close(), waiters?.close()]);
    for (const one of [first, second]) one.disconnect();
  });
});

describePrivate('Waiting through a cluster', () => {
  let servers: ClusterServers;
  let admins: TestClient[];

  beforeAll(async () => {
    servers = await startCluster();
    admins = await Promise.all(servers.masters.map(({ address }) => connectTo(address)));
  });

  afterAll(() => servers.stop());

  const nodes = () => servers.masters.map(({ address }) => ({ ...address }));

  it.each(each)('ends by a message, of a sharded channel where the type has one: %s', async (_name, { cluster }) => {
    for (const lockType of ['pub-sub', 'fair', 'redisson'] as const)
      await waitOnce(() => cluster(nodes()), lockType, admins);
  });

  it('subscribes again after its connection was lost', async () => {
    const [{ cluster }] = packages as [IoredisPackage];
    const instance = cluster(nodes());
    const options = { registryKey: uniqueKey(), lockType: 'fair', idleBetweenTries: NEVER / 10 } as const;
    const registry = new RedisLockRegistry(fromIoredis(instance), { ...options, commandTimeout: 60_000 });
    const name = `${options.registryKey}:key`;
    const { master } = await servers.ownersOf(name);
    const admin = await master.admin();
    await admin.set(name, 'another');
    const waiting = registry.run('key', () => 'entered');
    const shardChannels = async () => (await admin.sendCommand(['PUBSUB', 'SHARDCHANNELS'])) as unknown[];
    await until(async () => (await shardChannels()).length === 1);
    await untilQuiet(admin);
    const listening = async () =>
      /id=(\d+)/.exec(String(await admin.sendCommand(['CLIENT', 'LIST', 'TYPE', 'pubsub'])))?.[1];
    const killed = async () => Number(await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']));
    const before = await listening();
    expect(await killed()).toBe(1);
    await until(async () => {
      const now = await listening();
      return now !== undefined && now !== before && (await shardChannels()).length === 1;
    });
    await untilQuiet(admin);
    // No message says that the lock is free. The waiter looks when it has subscribed once more.
    expect(await Promise.all([killed(), admin.del(name)])).toEqual([1, 1]);
    expect(await waiting).toBe('entered');
    await registry.close();
    await until(async () => (await shardChannels()).length === 0);
    instance.disconnect();
  });
});
