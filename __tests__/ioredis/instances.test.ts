import { spawn } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { fromIoredis, type Ioredis } from '../../lib/ioredis';
import type { ClusterIoredis } from '../../lib/ioredis/client';
import { startCluster } from '../support/cluster';
import { type IoredisPackage, ioredisOptions, packages } from '../support/ioredis-packages';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const each = packages.map((one): [string, IoredisPackage] => [one.name, one]);

describe.each(each)('fromIoredis with %s', (_name, { single, cluster }) => {
  const opened: Ioredis[] = [];
  const made = (instance: Ioredis) => {
    opened.push(instance);
    return instance;
  };
  const lazy = (options: object) => made(single({ lazyConnect: true, ...options }));

  it('refuses the options that it cannot work with, and says what to do', () => {
    expect(() => fromIoredis(lazy({ keyPrefix: 'app:' }))).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        message: expect.stringMatching(/keyPrefix, got "app:".*registryKey/),
      }),
    );
    expect(() => fromIoredis(lazy({ stringNumbers: true }))).toThrow(/stringNumbers/);
    const nodes = [{ host: 'localhost', port: 1 }];
    const prefixed = made(cluster(nodes, { lazyConnect: true, redisOptions: { keyPrefix: 'app:' } }));
    expect(() => fromIoredis(prefixed)).toThrow(/keyPrefix, got "app:"/);
    for (const one of opened.splice(0)) one.disconnect();
  });

  it('gives one client for one instance', () => {
    const instance = lazy({});
    expect(fromIoredis(instance)).toBe(fromIoredis(instance));
    instance.disconnect();
  });

  it('is named to who passes an instance without it', () => {
    const nodes = [{ host: 'localhost', port: 1 }];
    for (const instance of [lazy({}), made(cluster(nodes, { lazyConnect: true }))]) {
      expect(() => new RedisLockRegistry(instance as unknown as RedisClient, { registryKey: 'orders' })).toThrow(
        /an ioredis or iovalkey client; wrap it: fromIoredis\(redis\), the adapter in 'redis-lock-registry\/ioredis'/,
      );
      instance.disconnect();
    }
  });
});

describe('fromIoredis', () => {
  it.each([
    ['nothing', undefined, /got undefined/],
    ['a URL', 'redis://:secret@localhost', /got a string/],
    ['options', { host: 'localhost', password: 'secret' }, /got an options object/],
  ])('refuses %s without quoting it', (_name, value, message) => {
    const make = () => fromIoredis(value as unknown as Ioredis);
    expect(make).toThrow(expect.objectContaining({ name: 'TypeError', message: expect.stringMatching(message) }));
    expect(make).not.toThrow(/secret/);
  });
});

describePrivate.each(each)('An instance of %s', (_name, { single }) => {
  const redis = PrivateRedis.install();
  const open = () => single(ioredisOptions(redis.address));

  it('is the caller’s: it is neither changed nor closed, and has its listeners back', async () => {
    const instance = open();
    await until(() => instance.status === 'ready');
    const emitter = instance as unknown as { eventNames(): unknown[] };
    const state = () => ({ own: Object.keys(instance).sort(), events: emitter.eventNames() });
    const before = state();
    const registryKey = uniqueKey();
    await redis.admin.set(`${registryKey}:key`, 'another', { PX: 300 });
    const registry = new RedisLockRegistry(fromIoredis(instance), { registryKey, lockType: 'pub-sub' });
    await registry.run('key', () => undefined);
    await registry.close();
    expect(state()).toEqual(before);
    expect(await instance.eval('return 1', 0)).toBe(1);
    instance.disconnect();
  });

  it('lists locks, and says who holds one', async () => {
    const instance = open();
    const registry = new RedisLockRegistry(fromIoredis(instance), { registryKey: uniqueKey() });
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => registry.obtain(key).lock()));
    const keys: string[] = [];
    for await (const { key, isOurs } of registry.list({ count: 1 })) if (isOurs) keys.push(key);
    expect(keys.sort()).toEqual(['a', 'b', 'c']);
    for (const lease of leases) await lease.unlock();
    await registry.close();
    instance.disconnect();
  });

  it('that the application has closed is reported at once, and not after a silence', async () => {
    const instance = open();
    const { registry } = createRegistry(fromIoredis(instance));
    await registry.run('key', () => undefined);
    instance.disconnect();
    await until(() => instance.status === 'end');
    await expect(registry.obtain('key').lock()).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      cause: { name: 'ClientClosedError' },
    });
  });

  it('works with auto-pipelining', async () => {
    const instance = single({ ...ioredisOptions(redis.address), enableAutoPipelining: true });
    const registry = new RedisLockRegistry(fromIoredis(instance), { registryKey: uniqueKey(), lockType: 'fair' });
    let entered = 0;
    const callers = Array.from({ length: 50 }, (_, i) => registry.run(`key ${i % 5}`, () => void entered++));
    await Promise.all(callers);
    expect(entered).toBe(50);
    await registry.close();
    instance.disconnect();
  });
});

describePrivate('A cluster of ioredis', () => {
  it('lists the locks of all its nodes', async () => {
    const servers = await startCluster();
    const redisOptions = { autoResendUnfulfilledCommands: false };
    const roots = servers.masters.map(({ address }) => ({ ...address }));
    const instance = (packages[0] as IoredisPackage).cluster(roots, { redisOptions }) as ClusterIoredis;
    const registry = new RedisLockRegistry(fromIoredis(instance), { registryKey: uniqueKey(), lockType: 'fair' });
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
    instance.disconnect();
    await servers.stop();
  });
});

describePrivate('A process whose registry has a pub/sub connection', () => {
  const redis = PrivateRedis.install();

  it('ends by itself when it has closed its own instance only (P8)', async () => {
    const child = spawn(
      process.execPath,
      ['-r', require.resolve('esbuild-register'), join(__dirname, 'waiter-process.ts')],
      { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, TEST_ADDRESS: JSON.stringify(redis.address) } },
    );
    const exited = once(child, 'exit');
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    expect(said.toString()).toBe('closed\n');
    const limit = setTimeout(() => child.kill('SIGKILL'), 20_000);
    const exit = await exited;
    clearTimeout(limit);
    expect(exit).toEqual([0, null]);
  });
});
