import type { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { GlideClient, Logger } from '@valkey/valkey-glide';
import { type RedisClient, RedisLockRegistry, type RedisSubscriber } from '../../lib';
import { fromIoredis, type Ioredis } from '../../lib/clients/ioredis';
import type { ClusterIoredis } from '../../lib/clients/ioredis/instance';
import { fromGlide, type Glide } from '../../lib/clients/valkey-glide';
import { startCluster } from '../support/cluster';
import { type IoredisPackage, ioredisOptions, packages } from '../support/ioredis-packages';
import { Node } from '../support/node';
import { describePrivate, installed, PrivateRedis } from '../support/private-redis';
import { Program } from '../support/program';
import { uniqueKey } from '../support/redis';
import { untilQuiet } from '../support/server-load';
import { itSince } from '../support/since';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const eachPackage = packages.map((one): [string, IoredisPackage] => [one.name, one]);

/** Longer than a test may take: a waiter that is not notified does not end. */
const NEVER = 600_000;

describe.each([
  ['fromIoredis', (value: unknown) => fromIoredis(value as Ioredis)],
  ['fromGlide', (value: unknown) => fromGlide(value as Glide)],
])('%s', (_name, adapt) => {
  it.each([
    ['nothing', undefined, /got undefined/],
    ['a URL', 'redis://:secret@localhost', /got a string/],
    ['options', { host: 'localhost', password: 'secret' }, /got an options object/],
    ['a configuration', { addresses: [{ host: 'localhost' }] }, /got an options object/],
  ])('An adapter refuses %s without quoting it', (_name, value, message) => {
    const make = () => adapt(value);
    expect(make).toThrow(expect.objectContaining({ name: 'TypeError', message: expect.stringMatching(message) }));
    expect(make).not.toThrow(/secret/);
  });
});

/** With both, an instance of one server answers nothing after a lost connection. */
const STUCK_ALONE = { enableAutoPipelining: true, redisOptions: { autoResendUnfulfilledCommands: false } };

describe.each(eachPackage)('fromIoredis with %s', (_name, { single, cluster }) => {
  it.each<[string, RegExp, () => Ioredis]>([
    ['keyPrefix', /keyPrefix, got "app:".*registryKey/, () => single({ lazyConnect: true, keyPrefix: 'app:' })],
    ['stringNumbers', /stringNumbers/, () => single({ lazyConnect: true, stringNumbers: true })],
    [
      'keyPrefix of a cluster',
      /keyPrefix, got "app:"/,
      () => cluster([{ host: 'localhost', port: 1 }], { lazyConnect: true, redisOptions: { keyPrefix: 'app:' } }),
    ],
    [
      'stringNumbers of a cluster',
      /stringNumbers/,
      () => cluster([{ host: 'localhost', port: 1 }], { lazyConnect: true, redisOptions: { stringNumbers: true } }),
    ],
    [
      'enableAutoPipelining with autoResendUnfulfilledCommands: false',
      /one of enableAutoPipelining and autoResendUnfulfilledCommands: false, got both/,
      () => single({ lazyConnect: true, enableAutoPipelining: true, autoResendUnfulfilledCommands: false }),
    ],
  ])('fromIoredis refuses the option %s, and says what to do', (_option, message, make) => {
    const instance = make();
    const error = expect.objectContaining({ name: 'TypeError', message: expect.stringMatching(message) });
    expect(() => fromIoredis(instance)).toThrow(error);
    instance.disconnect();
  });

  it.each<[string, () => Ioredis]>([
    ['alone', () => single({ lazyConnect: true, enableAutoPipelining: true })],
    ['of a cluster', () => cluster([{ host: 'localhost', port: 1 }], { lazyConnect: true, ...STUCK_ALONE })],
  ])('fromIoredis takes the option enableAutoPipelining %s', (_which, make) => {
    const instance = make();
    expect(fromIoredis(instance)).toHaveProperty('evalSha');
    instance.disconnect();
  });
});

/** An instance that an application has, and what the tests do with it. */
interface Instance {
  readonly instance: object;
  adapt(): RedisClient;
  /** Any command. */
  ping(): Promise<unknown>;
  end(): Promise<void>;
  readonly wrapIt: RegExp;
}

type Address = Node['address'];

const ioredisInstance = async (instance: Ioredis): Promise<Instance> => {
  await until(() => instance.status === 'ready');
  return {
    instance,
    adapt: () => fromIoredis(instance),
    ping: () => instance.eval('return 1', 0),
    async end() {
      instance.disconnect();
      await until(() => instance.status === 'end');
    },
    wrapIt:
      /an ioredis or iovalkey client; wrap it: fromIoredis\(redis\), the adapter in 'redis-lock-registry\/ioredis'/,
  };
};

const glideInstance = async (address: Address): Promise<Instance> => {
  Logger.setLoggerConfig('off'); // it would write every NOSCRIPT to the console
  const instance = await GlideClient.createClient({ addresses: [{ ...address }], requestTimeout: 10_000 });
  return {
    instance,
    adapt: () => fromGlide(instance),
    ping: () => instance.ping(),
    end: async () => instance.close(),
    wrapIt: /a valkey-glide client; wrap it: fromGlide\(client\), the adapter in 'redis-lock-registry\/valkey-glide'/,
  };
};

const KINDS: readonly [string, (address: Address) => Promise<Instance>][] = [
  ...packages.map(({ name, single }): [string, (address: Address) => Promise<Instance>] => [
    name,
    (address) => ioredisInstance(single(ioredisOptions(address))),
  ]),
  ['valkey-glide', glideInstance],
];

describePrivate.each(KINDS)('An instance of %s', (kind, open) => {
  const redis = installed(() => Node.start()); // on TCP: valkey-glide knows no unix sockets

  it('An instance that an adapter takes has one client, and without the adapter the error names it', async () => {
    const { instance, adapt, end, wrapIt } = await open(redis().address);
    expect(() => new RedisLockRegistry(instance as RedisClient, { registryKey: 'orders' })).toThrow(wrapIt);
    expect(adapt()).toBe(adapt());
    await end();
  });

  it('An instance that an adapter takes is the caller’s: it is neither changed nor closed, and has its listeners back', async () => {
    const { instance, adapt, ping, end } = await open(redis().address);
    const emitter = instance as { eventNames?(): unknown[] };
    const state = () => ({ own: Object.keys(instance).sort(), events: emitter.eventNames?.() });
    const before = state();
    const registryKey = uniqueKey();
    await redis().send('SET', `${registryKey}:key`, 'another', 'PX', '300');
    const registry = new RedisLockRegistry(adapt(), { registryKey, lockType: 'pub-sub' });
    await registry.run('key', () => undefined);
    await registry.close();
    expect(state()).toEqual(before);
    expect(await ping()).toBeDefined();
    await end();
  });

  it('An instance that an adapter takes lists locks, and runs scripts that the server does not know', async () => {
    const { adapt, end } = await open(redis().address);
    const { registry } = createRegistry(adapt());
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => registry.obtain(key).lock()));
    await redis().send('SCRIPT', 'FLUSH');
    const keys: string[] = [];
    for await (const { key, isOurs } of registry.list({ count: 1 })) if (isOurs) keys.push(key);
    expect(keys.sort()).toEqual(['a', 'b', 'c']);
    await Promise.all(leases.map((lease) => lease.renew()));
    for (const lease of leases) await lease.unlock();
    await registry.close();
    await end();
  });

  it('An instance that an adapter takes that the application has closed is reported at once, and not after a silence', async () => {
    const { adapt, end } = await open(redis().address);
    const { registry } = createRegistry(adapt());
    await registry.run('key', () => undefined);
    await end();
    await expect(registry.obtain('key').lock()).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { name: 'ClientClosedError' },
    });
  });

  it('An instance that an adapter takes passes on what the server says of a key of a wrong type', async () => {
    const { adapt, end } = await open(redis().address);
    const { registry, nameOf } = createRegistry(adapt());
    await redis().send('LPUSH', nameOf('key'), 'no lock');
    await expect(registry.obtain('key').lock()).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { message: expect.stringMatching(/^WRONGTYPE /) },
    });
    await registry.close();
    await end();
  });

  if (kind === 'valkey-glide') {
    it('An instance that an adapter takes has no connection for minReplicas: the constructor says so', async () => {
      const { adapt, end } = await open(redis().address);
      const options = { registryKey: 'orders', minReplicas: 1 };
      expect(() => new RedisLockRegistry(adapt(), options)).toThrow(/minReplicas 1/);
      await end();
    });
  }
});

describePrivate.each(eachPackage)('An instance of %s with auto-pipelining', (_name, { single }) => {
  const redis = PrivateRedis.install();

  it('An instance with auto-pipelining works', async () => {
    const instance = single({ ...ioredisOptions(redis.address), enableAutoPipelining: true });
    const { registry } = createRegistry(fromIoredis(instance), { lockType: 'fair' });
    let entered = 0;
    const callers = Array.from({ length: 50 }, (_, i) => registry.run(`key ${i % 5}`, () => void entered++));
    await Promise.all(callers);
    expect(entered).toBe(50);
    await registry.close();
    instance.disconnect();
  });
});

describePrivate.each(eachPackage)('An instance of %s', (_name, { single }) => {
  const redis = PrivateRedis.install();

  it('An instance that an adapter takes that is closed while it waits to connect again is reported at once', async () => {
    const proxy = await redis.proxy();
    const instance = single({ ...ioredisOptions(proxy.address), retryStrategy: () => NEVER });
    (instance as unknown as EventEmitter).on('error', () => undefined);
    const { registry } = createRegistry(fromIoredis(instance));
    await registry.run('key', () => undefined);
    proxy.refuse();
    proxy.reset();
    await until(() => instance.status === 'reconnecting');
    instance.disconnect();
    await expect(registry.obtain('key').lock({ waitTime: 1_000 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { name: 'ClientClosedError' },
    });
  });

  it('An instance that an adapter takes, whose connection was lost while a channel was unsubscribed, listens to it again', async () => {
    const proxy = await redis.proxy();
    const instance = single(ioredisOptions(proxy.address));
    const options = { lockType: 'pub-sub', idleBetweenTries: NEVER / 10 } as const;
    const { registry, registryKey } = createRegistry(fromIoredis(instance), options);
    const holder = createRegistry(redis.admin, { ...options, registryKey }).registry.obtain('key');
    const lease = await holder.lock();
    const lost = proxy.loseRequest('unsubscribe');
    expect(await registry.obtain('key').tryLock({ waitTime: 500 })).toBeNull();
    await lost;
    const waiting = registry.obtain('key').lock();
    const listening = async () =>
      (await redis.admin.pubSubNumSub(`${registryKey}-channel:${registryKey}:key`)) as object;
    await until(async () => Object.values(await listening())[0] === 1);
    await lease.unlock();
    await (await waiting).unlock();
    await registry.close();
    instance.disconnect();
  });

  it('An instance that an adapter takes that connects with its first command takes a lock by a single attempt', async () => {
    const instance = single({ ...ioredisOptions(redis.address), lazyConnect: true });
    const { registry } = createRegistry(fromIoredis(instance));
    const lease = await registry.obtain('key').tryLock();
    await lease?.unlock();
    expect(lease).not.toBeNull();
    instance.disconnect();
  });
});

describePrivate('A cluster of ioredis', () => {
  const [{ cluster }] = packages as [IoredisPackage];
  const servers = installed(() => startCluster());
  let instance: ClusterIoredis;

  beforeAll(() => {
    const nodes = servers().masters.map(({ address }) => ({ ...address }));
    instance = cluster(nodes, { redisOptions: { autoResendUnfulfilledCommands: false } }) as ClusterIoredis;
  });

  afterAll(() => instance.disconnect());

  it('A cluster of ioredis lists the locks of all its nodes, and without the adapter the error names it', async () => {
    expect(() => new RedisLockRegistry(instance as unknown as RedisClient, { registryKey: 'orders' })).toThrow(
      /wrap it: fromIoredis\(redis\)/,
    );
    const { registry } = createRegistry(fromIoredis(instance), { lockType: 'fair' });
    const names = Array.from({ length: 12 }, (_, i) => `key-${i}`);
    const leases = await Promise.all(names.map((key) => registry.obtain(key).lock()));
    const keys: string[] = [];
    for await (const { key } of registry.list()) keys.push(key);
    expect(keys.sort()).toEqual(names.sort());
    const listeners = () =>
      instance.nodes('master').map((node) => (node as unknown as EventEmitter).listenerCount('close'));
    const before = listeners();
    for await (const _ of registry.list());
    expect(listeners()).toEqual(before);
    for (const lease of leases) await lease.unlock();
    await registry.close();
  });

  it.each(eachPackage)(
    'A cluster of %s with auto-pipelining locks keys of all its nodes at once',
    async (_name, of) => {
      const nodes = servers().masters.map(({ address }) => ({ ...address }));
      const pipelining = of.cluster(nodes, { enableAutoPipelining: true });
      const { registry } = createRegistry(fromIoredis(pipelining));
      const keys = Array.from({ length: 12 }, (_, i) => `key-${i}`);
      const leases = await Promise.all(keys.map((key) => registry.obtain(key).lock({ waitTime: 2_000 })));
      await Promise.all(leases.map((lease) => lease.unlock()));
      await registry.close();
      pipelining.disconnect();
    },
  );

  it.each(eachPackage)(
    'A cluster of %s that the application has disconnected, even twice, is reported at once until it connects again',
    async (_name, of) => {
      const closed = of.cluster(servers().masters.map(({ address }) => ({ ...address })));
      const { registry } = createRegistry(fromIoredis(closed));
      await Promise.all(['a', 'b', 'c', 'd'].map((key) => registry.run(key, () => undefined)));
      for (let i = 0; i < 2; i++) {
        closed.disconnect();
        await pause(100); // until all its connections have ended
        await expect(registry.obtain('a').lock({ waitTime: 1_000 })).rejects.toMatchObject({
          cause: { name: 'ClientClosedError' },
        });
      }
      await (closed as unknown as { connect(): Promise<void> }).connect();
      await registry.run('a', () => undefined);
      closed.disconnect();
    },
  );

  it.each(eachPackage)(
    'A cluster of %s whose nodes connect again by themselves asks about its leases at once (P6)',
    async (_name, of) => {
      const nodes = servers().masters.map(({ address }) => ({ ...address }));
      const options = { clusterNodeRetryStrategy: () => 5, redisOptions: { connectionName: 'again' } };
      const reconnecting = of.cluster(nodes, options);
      const { registry, nameOf } = createRegistry(fromIoredis(reconnecting));
      const lease = await registry.obtain('key').lock();
      const admin = await (await servers().ownersOf(nameOf('key'))).master.admin();
      await admin.del(nameOf('key'));
      const connections = String(await admin.sendCommand(['CLIENT', 'LIST']));
      const [, id = ''] = /id=(\d+) .*name=again /.exec(connections) ?? [];
      await admin.sendCommand(['CLIENT', 'KILL', 'ID', id]);
      await until(() => lease.signal.aborted);
      expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
      await registry.close();
      reconnecting.disconnect();
    },
  );

  itSince('7.0').each(eachPackage)(
    'A cluster of %s hears the plain channels after its last sharded one at a node, and the other way round',
    async (_name, of) => {
      const own = of.cluster(servers().masters.map(({ address }) => ({ ...address })));
      await until(() => own.status === 'ready');
      const client = fromIoredis(own) as Required<RedisSubscriber>;
      const heard: string[] = [];
      const listener = (message: unknown) => heard.push(String(message));
      // One at each node: so one of them is where the plain channel is.
      const sharded = ['{a}', '{b}', '{c}'].map((tag) => `${uniqueKey()}${tag}`);
      const plain = uniqueKey();
      const { master } = await servers().ownersOf(sharded[0] as string);
      const admin = await master.admin();
      const hears = async (command: string, channel: string) => {
        const message = uniqueKey();
        await admin.sendCommand([command, channel, message]);
        await until(() => heard.includes(message), { within: 5_000 });
      };
      for (const channel of sharded) await client.sSubscribe(channel, listener);
      await client.subscribe(plain, listener);
      await hears('PUBLISH', plain);
      for (const channel of sharded) await client.sUnsubscribe(channel, listener);
      await hears('PUBLISH', plain);
      for (const channel of sharded) await client.sSubscribe(channel, listener);
      await client.unsubscribe(plain, listener);
      await hears('SPUBLISH', sharded[0] as string);
      for (const channel of sharded) await client.sUnsubscribe(channel, listener);
      await until(async () => !String(await admin.sendCommand(['CLIENT', 'LIST', 'TYPE', 'pubsub'])).includes('id='));
      own.disconnect();
    },
  );

  itSince('7.0')('A cluster of ioredis subscribes again after its connection for messages was lost', async () => {
    const options = { registryKey: uniqueKey(), lockType: 'fair', idleBetweenTries: NEVER / 10 } as const;
    const registry = new RedisLockRegistry(fromIoredis(instance), { ...options, commandTimeout: 60_000 });
    const name = `${options.registryKey}:key`;
    const { master } = await servers().ownersOf(name);
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
  });
});

describePrivate('A process whose registry has a pub/sub connection', () => {
  const redis = PrivateRedis.install();

  it('A process whose registry has a pub/sub connection ends by itself when it has closed its own instance only (P8)', async () => {
    const program = ['-r', require.resolve('esbuild-register'), join(__dirname, 'waiter-process.ts')];
    const child = new Program([process.execPath, ...program], { TEST_ADDRESS: JSON.stringify(redis.address) });
    try {
      expect(await child.succeeds()).toEqual(['closed']);
    } finally {
      child.child.kill('SIGKILL');
    }
  });
});
