import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import { type LockWarning, RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { startCluster } from '../support/cluster';
import { type Connectable, connected } from '../support/connected';
import { machineDelay } from '../support/machine-delay';
import { type AnyClient, connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { type TestClient, uniqueKey } from '../support/redis';
import { startSentinel } from '../support/sentinel';
import { until } from '../support/until';

/** The servers of one kind of client. */
interface Servers {
  connect(): Promise<AnyClient>;
  /** Independent connections, one to each server. */
  readonly admins: readonly TestClient[];
  stop(): Promise<void>;
}

async function singleServer(create: (socket: PrivateRedis['address']) => AnyClient & Connectable): Promise<Servers> {
  const redis = await PrivateRedis.start();
  return { connect: () => connected(create(redis.address)), admins: [await redis.connect()], stop: async () => {} };
}

const kinds: Readonly<Record<string, () => Promise<Servers>>> = {
  'a client of redis 6': () => singleServer((socket) => createClient({ socket })),
  'a client of redis 6 with RESP2': () => singleServer((socket) => createClient({ socket, RESP: 2 })),
  'a client of redis 5': () => singleServer((socket) => createClient5({ socket })),
  'a cluster': async () => {
    const cluster = await startCluster();
    const client = await cluster.connect();
    const addresses = client.masters.map(({ port }) => ({ host: '127.0.0.1', port }));
    client.destroy();
    const admins = await Promise.all(addresses.map((address) => connectTo(address)));
    return { connect: () => cluster.connect(), admins, stop: () => cluster.stop() };
  },
  'a sentinel': async () => {
    const sentinel = await startSentinel();
    return {
      connect: () => sentinel.connect(),
      admins: [await connectTo(sentinel.master)],
      stop: () => sentinel.stop(),
    };
  },
};

describePrivate.each(Object.keys(kinds))('Waiting for a message through %s', (kind) => {
  let servers: Servers;
  const ended: (() => Promise<void> | void)[] = [];

  beforeAll(async () => {
    servers = await (kinds[kind] as () => Promise<Servers>)();
  });

  afterEach(async () => {
    for (const end of ended.splice(0).reverse()) await end();
  });

  afterAll(() => servers.stop());

  const registryKey = uniqueKey('registry');
  const warnings: LockWarning[] = [];

  const processOf = async (): Promise<RedisLockRegistry> => {
    const client = await servers.connect();
    const registry = new RedisLockRegistry(client, {
      registryKey,
      lockType: 'pub-sub',
      idleBetweenTries: 2_000,
      onWarning: (warning) => warnings.push(warning),
    });
    ended.push(async () => {
      await registry.close({ timeout: 0 });
      client.destroy();
    });
    return registry;
  };

  const channels = async (): Promise<string[]> =>
    (await Promise.all(servers.admins.map((admin) => admin.pubSubChannels(`*${registryKey}*`)))).flat();

  it('sleeps until it is notified, on any node, and leaves no channel and no connection', async () => {
    const [holders, waiters] = [await processOf(), await processOf()];
    const before = await Promise.all(servers.admins.map(async (admin) => (await admin.clientList()).length));
    for (const key of ['one', 'two', 'three', 'four']) {
      const lease = await holders.obtain(key).lock();
      const waiting = waiters.run(key, () => 'entered');
      const channelsOfKey = async () => (await channels()).filter((channel) => channel.endsWith(`:${key}`));
      await until(async () => (await channelsOfKey()).length > 0);
      expect(await channelsOfKey()).toHaveLength(1);
      // The waiter makes one more attempt after subscribing, before or after the release.
      const released = performance.now();
      await lease.unlock();
      expect(await waiting).toBe('entered');
      expect(performance.now() - released).toBeLessThan(SLACK + machineDelay());
    }
    await Promise.all([holders.close(), waiters.close()]);
    await until(async () => (await channels()).length === 0);
    await until(async () => {
      const now = await Promise.all(servers.admins.map(async (admin) => (await admin.clientList()).length));
      return now.every((count, i) => count <= (before[i] as number));
    });
    expect(warnings).toEqual([]);
  });
});
