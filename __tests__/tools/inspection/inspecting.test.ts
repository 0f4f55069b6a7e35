import { beforeAll, describe, expect, it } from '@jest/globals';
import { GlideClient, Logger } from '@valkey/valkey-glide';
import { createSentinel } from 'redis';
import {
  type ListedLock,
  LockInspectionError,
  type LockType,
  type RedisClient,
  type RedisLockRegistry,
} from '../../../lib';
import { traitsOf } from '../../../lib/api/lock-types';
import { fromIoredis } from '../../../lib/clients/ioredis';
import type { ClusterIoredis } from '../../../lib/clients/ioredis/instance';
import { fromGlide } from '../../../lib/clients/valkey-glide';
import { LOCK_TYPES } from '../../../lib/kinds';
import { SPRING_SCRIPTS } from '../../../lib/kinds/spring/kind';
import { startCluster } from '../../support/cluster';
import { connected } from '../../support/connected';
import { packageNamed } from '../../support/ioredis-packages';
import { silence } from '../../support/mock-redis';
import { atTheEnd, describePrivate, PrivateRedis, untilTheEnd } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { type SentinelServers, startSentinel } from '../../support/sentinel';
import { createRegistry, lossOf } from '../../support/test-registry';
import { until } from '../../support/until';

describePrivate('Inspecting', () => {
  const redis = PrivateRedis.install();
  let clients: [TestClient, TestClient];

  beforeAll(async () => {
    clients = [await redis.connect(), await redis.connect()];
  });

  /** Two registries with one registryKey, as of two processes. */
  const two = (lockType: LockType, options: { fencing?: boolean; expireAfter?: number } = {}) => {
    const first = createRegistry(clients[0], { lockType, name: 'web-7', ...options });
    const { registryKey } = first;
    const second = createRegistry(clients[1], { lockType, name: 'web-8', registryKey, ...options });
    return [first.registry, second.registry] as const;
  };

  describe.each(LOCK_TYPES)('a %s lock', (lockType) => {
    it('Inspecting a lock finds its owner, from every process, and none while it is free', async () => {
      const [registry, other] = two(lockType, { fencing: true });
      const free = await registry.obtain('key').inspect();
      expect(free).toMatchObject({ held: false, isOurs: false, remaining: 0 });
      expect([free.owner, free.name, free.fencingToken]).toEqual([undefined, undefined, undefined]);
      const lease = await registry.obtain('key').lock({ ttl: 30_000 });
      const state = await registry.obtain('key').inspect();
      expect(state).toMatchObject({ held: true, name: 'web-7', isOurs: true, fencingToken: lease.fencingToken });
      expect(state.owner?.startsWith(`${registry.id}:`)).toBe(true);
      expect(state.remaining).toBeGreaterThan(lease.remaining - 5_000);
      expect(state.remaining).toBeLessThanOrEqual(30_000);
      const seen = await other.obtain('key').inspect();
      expect(seen).toEqual({ ...state, isOurs: false, remaining: seen.remaining });
      await lease.unlock();
    });

    it('Inspecting a lock counts those that wait', async () => {
      const [registry, other] = two(lockType);
      const lease = await registry.obtain('key').lock();
      const waiting = [1, 2].map(() => other.run('key', () => undefined));
      const expected = traitsOf(lockType).polls ? undefined : 1;
      await until(async () => (await registry.obtain('key').inspect()).waiting === expected);
      await lease.unlock();
      await Promise.all(waiting);
    });

    it('Inspecting a lock unlocks by force what another process holds, which learns it at once, and that its key is gone', async () => {
      const [registry, other] = two(lockType, { expireAfter: 1_500 });
      const lease = await registry.obtain('key').lock();
      const lost = lossOf(lease);
      const before = await other.obtain('key').forceUnlock();
      expect(before).toMatchObject({ held: true, name: 'web-7', isOurs: false });
      expect((await other.obtain('key').inspect()).held).toBe(false);
      expect((await lost).reason).toBe('expired');
      expect(String(lease.signal.reason)).toContain('forced unlock');
      await expect(lease.unlock()).rejects.toMatchObject({ reason: 'expired' });
      expect((await other.obtain('key').forceUnlock()).held).toBe(false);
    });

    it('Inspecting a lock unlocked by force goes to a waiter long before its ttl ends', async () => {
      const [registry, other] = two(lockType);
      await registry.obtain('key').lock({ ttl: 600_000 });
      const waiting = other.obtain('key').lock({ waitTime: 60_000 });
      await until(async () => ((await other.obtain('key').inspect()).waiting ?? 1) > 0);
      await other.obtain('key').forceUnlock();
      const next = await waiting;
      next.assertHeld();
      await next.unlock();
    });

    it('Inspecting a lock lists the held locks, and no companion key', async () => {
      const [registry, other] = two(lockType, { fencing: true });
      const leases = [];
      for (let i = 0; i < 30; i++) leases.push(await registry.obtain(`order:${i}`).lock());
      leases.push(await other.obtain('stock[1]*').lock());
      const waiting = other.run('order:1', () => undefined);
      const found: ListedLock[] = [];
      for await (const lock of registry.list({ count: 5 })) found.push(lock);
      expect(found.map(({ key }) => key).sort()).toEqual(
        ['stock[1]*', ...Array.from({ length: 30 }, (_, i) => `order:${i}`)].sort(),
      );
      expect(found.filter(({ isOurs }) => !isOurs).map(({ name }) => name)).toEqual(['web-8']);
      const matching = [];
      for await (const { key } of registry.list({ match: 'order:2?' })) matching.push(key);
      expect(matching.length).toBe(10);
      for (const lease of leases) await lease.unlock();
      await waiting;
      for await (const { key } of registry.list()) throw new Error(`${key} is held`);
    });
  });

  it('Inspecting a key of another type, or a silent Redis, is an error that names the key', async () => {
    const { registry, nameOf } = createRegistry(clients[0], {});
    await clients[0].hSet(nameOf('key'), 'field', 'value');
    const isAHash = /WRONGTYPE It is .*hash, in Redis, and it is used as a lock of type spin here$/;
    for (const asked of [registry.obtain('key').inspect(), registry.obtain('key').forceUnlock()]) {
      const error = await asked.catch((reason) => reason);
      expect(error).toBeInstanceOf(LockInspectionError);
      expect(error.message).toMatch(isAHash);
    }
    const reading = registry.readWrite('key').read.inspect();
    await expect(reading).rejects.toThrow(/hash, in Redis, and it is used as a read\/write lock here/);
    expect(await clients[0].exists(nameOf('key'))).toBe(1);
    const silent = createRegistry({ eval: silence, evalSha: silence }, { commandTimeout: 50 }).registry;
    await expect(silent.obtain('key').inspect()).rejects.toMatchObject({ code: 'ERR_LOCK_INSPECTION', key: 'key' });
  });

  it.each<[LockType, 'string' | 'hash']>([
    ['spin', 'string'],
    ['pub-sub', 'string'],
    ['fair', 'string'],
    ['redisson', 'hash'],
    ['redisson-fair', 'hash'],
  ])('A %s lock whose key has an empty value is held by another program: a %s', async (lockType, format) => {
    const { registry, nameOf, warnings } = createRegistry(clients[0], { lockType, warnAfter: 50 });
    const name = nameOf('key');
    await (format === 'string' ? clients[0].set(name, '') : clients[0].hSet(name, '', '1'));
    const lock = registry.obtain('key');
    const state = { held: true, owner: '', name: undefined, isOurs: false, remaining: Number.POSITIVE_INFINITY };
    expect(await lock.inspect()).toMatchObject(state);
    const noLocks = `another program holds it, in no form that is known, and its key has no expiry`;
    await expect(lock.lock({ waitTime: 300 })).rejects.toThrow(noLocks);
    expect(warnings[0]?.message).toContain(noLocks);
    const listed: string[] = [];
    for await (const { key } of registry.list()) listed.push(key);
    expect(listed).toEqual(['key']);
    expect(await lock.forceUnlock()).toMatchObject(state);
    await (await lock.lock()).unlock();
  });

  it('Inspecting finds, to unlock it by force, what is kept for its minHold by then', async () => {
    const { source } = SPRING_SCRIPTS.inspection.forceUnlock;
    for (const [owner, freed] of [
      ['kept@me:1', [1, 0]],
      ['me:2', -1],
    ] as const) {
      await clients[0].set('forced', owner);
      expect(await clients[0].eval(source, { keys: ['forced'], arguments: ['me:1', '', '0', 'channel'] })).toEqual(
        freed,
      );
    }
  });

  it('Inspecting a list without a registryKey has no data of the application', async () => {
    const [client] = clients;
    await client.flushAll();
    const fixed = { registryKey: '', lockType: 'redisson-fair' } as const;
    const [registry, other] = [0, 1].map(() => createRegistry(client, fixed).registry) as [
      RedisLockRegistry,
      RedisLockRegistry,
    ];
    await client.hSet('session', { user: '7', token: 'secret' });
    await client.zAdd('delayed', { score: Date.now() + 60_000, value: 'job:secret' });
    const java = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11:31';
    await client.hSet('java', java, '1');
    const lease = await registry.obtain('key').lock();
    const permit = await registry.semaphore('seats', { permits: 3 }).lock();
    const waiting = other.run('key', () => undefined);
    await until(async () => ((await registry.obtain('key').inspect()).waiting ?? 0) > 0);
    const found: ListedLock[] = [];
    for await (const lock of registry.list()) found.push(lock);
    const owners = found.map(({ key, isOurs, owner }) => [key, isOurs || owner]);
    expect(owners.toSorted()).toEqual([
      ['java', java],
      ['key', true],
      ['seats', true],
    ]);
    await Promise.all([lease.unlock(), permit.unlock(), waiting]);
  });

  it('Inspecting a list has the locks of all masters of a cluster', async () => {
    const cluster = await untilTheEnd(startCluster());
    const { registry } = createRegistry(await cluster.connect(), { lockType: 'fair', fencing: true });
    for (let i = 0; i < 20; i++) await registry.obtain(`order:${i}`).lock();
    const keys = new Set();
    for await (const { key } of registry.list()) keys.add(key);
    expect(keys.size).toBe(20);
    expect(await registry.obtain('order:7').forceUnlock()).toMatchObject({ held: true, isOurs: true });
    await registry.close({ timeout: 0 });
  });

  it.each<[string, (servers: SentinelServers) => Promise<{ client: RedisClient; end(): void }>]>([
    [
      'a sentinel client',
      async ({ name, sentinel }) => {
        const options = { name, sentinelRootNodes: [sentinel], replicaPoolSize: 1 };
        const client = await connected(createSentinel(options));
        return { client, end: () => client.destroy() };
      },
    ],
    [
      'valkey-glide',
      async ({ nodes }) => {
        const addresses = nodes.map(({ address }) => ({ ...address }));
        const options = { addresses, readFrom: 'preferReplica', requestTimeout: 10_000 } as const;
        const client = await GlideClient.createClient(options);
        return { client: fromGlide(client), end: () => client.close() };
      },
    ],
  ])('Inspecting a list has the locks of the master, through %s that reads from replicas', async (_, connect) => {
    Logger.setLoggerConfig('off'); // it would write every NOSCRIPT to the console
    const servers = await startSentinel({ replicas: 2 });
    atTheEnd(() => servers.stop());
    const { client, end } = await connect(servers);
    atTheEnd(end);
    const { registry } = createRegistry(client);
    const names = Array.from({ length: 100 }, (_, i) => `key-${i}`);
    await Promise.all(names.map((key) => registry.obtain(key).lock()));
    const keys = new Set<string>();
    for await (const { key } of registry.list({ count: 10 })) keys.add(key);
    expect([...keys].sort()).toEqual(names.sort());
    await registry.close({ timeout: 0 });
  });

  it('Inspecting a list of a cluster rejects while a master is away, whose locks would seem to be free', async () => {
    const cluster = await untilTheEnd(startCluster());
    const ioredis = packageNamed('ioredis 5').cluster(cluster.masters.map(({ address }) => ({ ...address })));
    atTheEnd(() => ioredis.disconnect());
    const connected = () => (ioredis as ClusterIoredis).nodes('master').length;
    const { registry } = createRegistry(fromIoredis(ioredis), { commandTimeout: 1_000 });
    // It connects to each master.
    expect(await registry.list().next()).toMatchObject({ done: true });
    await cluster.masters[1]?.kill();
    await until(() => connected() < cluster.masters.length);
    await expect(registry.list().next()).rejects.toBeInstanceOf(LockInspectionError);
    await registry.close({ timeout: 0 });
  });
});
