import { expect, it, jest } from '@jest/globals';
import type { RedisClient } from '../../lib';
import { FaultyProxy } from '../../support/proxy';
import { startCluster } from '../support/cluster';
import {
  atTheEnd,
  type ClientKind,
  clientKinds,
  describePrivate,
  PrivateRedis,
  untilTheEnd,
} from '../support/private-redis';
import { startSentinel } from '../support/sentinel';
import { createRegistry, rejection } from '../support/test-registry';
import { until } from '../support/until';

/** Which of them the system says depends on where the connection was when it broke. */
const CUT = /the client failed: .*(ECONNREFUSED|ECONNRESET|Socket closed)/;

const failed = (why: RegExp) => ({ name: 'CannotAcquireLockError', message: expect.stringMatching(why) });

/** They connect again by themselves, and say that they have done so. */
const SAYING: readonly ClientKind[] = ['a client', 'a client of redis 5', 'a client of ioredis'];

describePrivate('the client says that it has no connection', () => {
  const redis = PrivateRedis.install();

  it.each(SAYING)('P1: a single attempt fails soon, says why, and leaves nothing: %s', async (kind) => {
    const proxy = await redis.proxy();
    const client = await clientKinds[kind](proxy.address);
    const { registry, registryKey } = createRegistry(client, { commandTimeout: 20_000 });
    const lock = registry.obtain('key');
    await (await lock.tryLock())?.unlock();
    proxy.refuse();
    proxy.reset();
    await until(() => client.isReady === false);
    // Much less than the time of a command.
    expect(await rejection(lock.tryLock(), failed(CUT))).toBeLessThan(5_000);
    await proxy.accept();
    await until(() => client.isReady);
    await registry.run('other', () => undefined);
    expect(await redis.admin.keys(`${registryKey}:key*`)).toEqual([]);
    await lock.run(() => undefined);
  });
});

describePrivate('a cluster says that it has no connection to one of its masters', () => {
  it('P1: single attempts for its keys fail soon, and others take their locks', async () => {
    const servers = await untilTheEnd(startCluster({ nodeTimeout: 60_000 }));
    const client = await servers.connect();
    const { registry } = createRegistry(client, { commandTimeout: 20_000 });
    const [lost, other] = [registry.obtain('{foo}'), registry.obtain('{bar}')];
    for (const lock of [lost, other]) await lock.run(() => undefined);
    const { master, slot } = await servers.ownersOf('foo');
    await master.kill();
    await until(() => client.slots[slot]?.master.client?.isReady === false);
    expect(await rejection(lost.tryLock(), failed(CUT))).toBeLessThan(5_000);
    expect(await (await other.tryLock())?.unlock()).toBeUndefined();
    await registry.close({ timeout: 0 });
  });
});

describePrivate('clients that say in other ways, or not always, that they have no connection', () => {
  const redis = PrivateRedis.install();

  interface Proxied {
    readonly client: RedisClient;
    readonly proxy: FaultyProxy;
  }

  async function ofGlide(proxy: FaultyProxy): Promise<Proxied> {
    const { GlideClient, Logger } = jest.requireActual<typeof import('@valkey/valkey-glide')>('@valkey/valkey-glide');
    const { fromGlide } = jest.requireActual<typeof import('../../lib/clients/valkey-glide')>(
      '../../lib/clients/valkey-glide',
    );
    Logger.setLoggerConfig('off');
    const instance = await GlideClient.createClient({ addresses: [proxy.address], requestTimeout: 10_000 });
    atTheEnd(() => instance.close());
    return { client: fromGlide(instance), proxy };
  }

  /** The one of redis 5 calls itself ready all the time. */
  async function ofSentinel(version: 'redis' | 'redis5'): Promise<Proxied> {
    const { createSentinel } = jest.requireActual<typeof import('redis')>(version);
    const servers = await untilTheEnd(startSentinel());
    const proxy = await untilTheEnd(FaultyProxy.start(servers.master));
    const { host, port } = servers.master;
    const client = createSentinel({
      name: servers.name,
      sentinelRootNodes: [servers.sentinel],
      nodeAddressMap: { [`${host}:${port}`]: proxy.address },
    });
    await client.on('error', () => undefined).connect();
    atTheEnd(() => client.destroy());
    return { client, proxy };
  }

  async function ofPool(proxy: FaultyProxy): Promise<Proxied> {
    return { client: await clientKinds['a pool'](proxy.address), proxy };
  }

  const isNotReady = (client: RedisClient) => (client as { isReady?: boolean }).isReady === false;

  // Only a pool says why.
  const OF_SENTINEL = /the client (has no connection|failed: .*ECONNRESET)/;
  const KINDS: readonly {
    kind: string;
    connect: (proxy: FaultyProxy) => Promise<Proxied>;
    says: RegExp;
    isCut?: (client: RedisClient) => boolean;
  }[] = [
    { kind: 'a pool', connect: ofPool, says: CUT },
    { kind: 'a sentinel client', connect: () => ofSentinel('redis'), says: OF_SENTINEL },
    { kind: 'a sentinel client of redis 5', connect: () => ofSentinel('redis5'), says: OF_SENTINEL },
    { kind: 'a client of valkey-glide', connect: ofGlide, says: /the client has no connection/, isCut: isNotReady },
  ];

  it.each(KINDS)(
    'P1: single attempts fail soon, say why, and leave nothing, until the client has connected again: $kind',
    async ({ connect, says, isCut }) => {
      const { client, proxy } = await connect(await redis.proxy());
      const { registry, registryKey } = createRegistry(client, { commandTimeout: 20_000 });
      const lock = registry.obtain('key');
      await (await lock.tryLock())?.unlock();
      proxy.refuse();
      proxy.reset();
      // The threads of valkey-glide may take a while to notice.
      if (isCut !== undefined) await until(() => isCut(client));
      for (let i = 0; i < 3; i++) expect(await rejection(lock.tryLock(), failed(says))).toBeLessThan(2_000);
      await proxy.accept();
      await until(async () => (await lock.tryRun(() => undefined).catch(() => undefined))?.ran, { within: 20_000 });
      await until(async () => (await redis.admin.keys(`${registryKey}:key*`)).length === 0);
    },
  );

  it.each(KINDS)(
    'P1: a single attempt over a connection that is silent has the time of a command: $kind',
    async ({ connect }) => {
      const { client, proxy } = await connect(await redis.proxy());
      const { registry } = createRegistry(client, { commandTimeout: 700 });
      const lock = registry.obtain('key');
      await (await lock.tryLock())?.unlock();
      proxy.replies.hold = true;
      expect(await rejection(lock.tryLock(), failed(/Redis has not answered for /))).toBeGreaterThan(690);
      proxy.replies.hold = false;
    },
  );
});
