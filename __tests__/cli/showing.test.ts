import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type LockType, RedisLockRegistry } from '../../lib';
import { columns } from '../../lib/cli/output';
import { Node } from '../support/node';
import { atTheEnd, describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { ask, linesOf } from './command';

const JAVA = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';

const at = ({ address }: Node) => ({ REDIS_URL: `redis://${address.host}:${address.port}` });

describePrivate('What redis-locks shows', () => {
  let server: Node;
  let env: { REDIS_URL: string };
  const registries: RedisLockRegistry[] = [];

  const registryOf = async (lockType: LockType, registryKey: string, name: string): Promise<RedisLockRegistry> => {
    const registry = new RedisLockRegistry(await server.admin(), { registryKey, lockType, name, fencing: true });
    registries.push(registry);
    return registry;
  };

  beforeAll(async () => {
    server = await Node.start();
    atTheEnd(() => server.stop());
    env = at(server);
    const orders = await registryOf('spin', 'orders', 'web-1');
    await orders.obtain('order:1').lock();
    await (await orders.obtain('kept').lock({ ttl: 60_000, minHold: 50_000 })).unlock();
    await orders.semaphore('render', { permits: 2 }).lock();
    await (await registryOf('spin', 'orders', 'web-2')).semaphore('render', { permits: 2 }).lock();
    await orders.readWrite('prices').write.lock();
    const waited = { fair: 'jobs', 'pub-sub': 'mail', redisson: 'stock', 'redisson-fair': 'queue' } as const;
    for (const [type, registryKey] of Object.entries(waited)) {
      await (await registryOf(type as LockType, registryKey, 'web-3')).obtain('key:1').lock();
      const other = await registryOf(type as LockType, registryKey, 'web-4');
      other
        .obtain('key:1')
        .lock()
        .catch(() => undefined);
      await until(async () => ((await other.obtain('key:1').inspect()).waiting ?? 0) > 0);
    }
    orders
      .semaphore('render', { permits: 2 })
      .lock()
      .catch(() => undefined);
    await until(async () => Number(await server.send('HLEN', '{orders:render}:waiters')) > 1);
    await server.send('SET', 'java:order:1', JAVA, 'PX', '60000');
    // What an application has.
    await server.send('SET', 'config', 'text');
    await server.send('SET', 'user:1:account', JAVA);
    await server.send('HSET', 'user:1', 'name', 'Ada');
    await server.send('ZADD', 'leaders', '7', 'ada');
    await server.send('RPUSH', 'orders:list', 'a');
  });

  afterAll(() => Promise.all(registries.map((registry) => registry.close({ timeout: 0 }))));

  it('is the locks of every registry, type and kind, as JSON, and no data of an application', async () => {
    const { exitCode, stdout, stderr } = await ask(['ls', '--json'], env);
    expect([exitCode, stderr]).toEqual([0, '']);
    const found = Object.fromEntries(linesOf({ stdout }).map(({ lock, ...rest }) => [lock, rest]));
    const plain = { kind: 'lock', isSure: true, isKept: false };
    const queue = [expect.objectContaining({ position: 1, waiter: 'web-4' })];
    expect(found).toEqual({
      'java:order:1': expect.objectContaining({ ...plain, isSure: false, format: 'spring', holder: JAVA }),
      'orders:order:1': expect.objectContaining({ ...plain, format: 'spring', holder: 'web-1', waiting: null }),
      'orders:kept': expect.objectContaining({ ...plain, isKept: true, holder: 'web-1' }),
      'orders:render': expect.objectContaining({
        ...{ kind: 'semaphore', format: 'shared', permits: 2, waiting: 1, registryKey: 'orders', key: 'render' },
        holders: [expect.objectContaining({ holder: 'web-2' }), expect.objectContaining({ holder: 'web-1' })],
      }),
      'orders:prices': expect.objectContaining({ kind: 'write', holder: 'web-1', fencingToken: expect.any(Number) }),
      'jobs:key:1': expect.objectContaining({ ...plain, type: 'fair', holder: 'web-3', waiting: 1, queue }),
      'mail:key:1': expect.objectContaining({
        ...plain,
        type: 'pub-sub',
        waiting: 1,
        registryKey: 'mail',
        key: 'key:1',
      }),
      'stock:key:1': expect.objectContaining({ ...plain, format: 'redisson', waiting: 1, fencingToken: 1 }),
      'queue:key:1': expect.objectContaining({ ...plain, type: 'redisson-fair', waiting: 1, queue }),
    });
    expect(found['orders:order:1'].remaining).toBeLessThanOrEqual(60_000);
  });

  it('is only what a registryKey, a type or a pattern leaves, and never that there is nothing else', async () => {
    const [ofOrders, ofType, matching, none] = await Promise.all([
      ask(['ls', '--json'], { ...env, REDIS_LOCKS_REGISTRY_KEY: 'jobs' }),
      ask(['ls', '--json', '--type', 'redisson'], env),
      ask(['ls', '--json', '--match', 'order:*'], env),
      ask(['ls', '--registry-key', 'typo'], env),
    ]);
    const locks = (asked: { stdout: string }) => linesOf(asked).map(({ lock }) => lock);
    expect(locks(ofOrders)).toEqual(['jobs:key:1']);
    expect(locks(ofType)).toEqual(expect.arrayContaining(['stock:key:1']));
    expect(locks(ofType)).not.toContain('queue:key:1');
    expect(locks(matching)).toEqual(['java:order:1', 'orders:order:1']);
    expect([none.exitCode, none.stdout]).toEqual([0, expect.stringMatching(/No lock under "typo:".*every registry/)]);
  });

  it('is the lock of that name, or the candidates where a key is that of several', async () => {
    const [one, several, missing] = await Promise.all([
      ask(['inspect', 'render'], env),
      ask(['inspect', 'order:1'], env),
      ask(['inspect', 'user:1'], env),
    ]);
    expect([one.exitCode, several.exitCode, missing.exitCode]).toEqual([0, 0, 69]);
    expect(one.stdout).toMatch(
      /^lock +orders:render\nregistryKey +orders\nkind +semaphore 2\/2\n(.*\n)*waiting +1\nqueue +1\. web-1, for .*\n$/,
    );
    expect(several.stdout).toMatch(/java:order:1.*spring\?.*\norders:order:1.*web-1/);
    expect(missing.stderr).toBe('redis-locks: Nobody holds a lock "user:1" in any registry\n');
  });

  it('is released by its whole name, and by no name that several have', async () => {
    const both = await ask(['release', 'order:1', '--yes'], env);
    expect([both.exitCode, both.stderr]).toEqual([64, expect.stringContaining('orders:order:1')]);
    const lease = await (await registryOf('pub-sub', 'shop:eu', 'web-5')).obtain('cart').lock();
    const waiting = (await registryOf('pub-sub', 'shop:eu', 'web-6')).obtain('cart').lock();
    await until(async () => String(await server.send('PUBSUB', 'CHANNELS', 'shop:eu-channel:*')) !== '');
    const released = await ask(['release', 'shop:eu:cart', '--yes'], env);
    expect([released.exitCode, released.stdout]).toEqual([0, 'Released "shop:eu:cart", held by web-5.\n']);
    await (await waiting).unlock();
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
  });
});

describe('The columns', () => {
  const { columns: width, isTTY } = process.stdout;
  afterAll(() => void Object.assign(process.stdout, { columns: width, isTTY }));

  it('fit the terminal, leave out what is empty, and keep a pipe plain', () => {
    const rows = [
      ['orders:order:42', 'lock', '', `a-host-with-a-long-name-${'x'.repeat(80)}:4711`],
      ['注文:\u001b[31m', 'kept', '', 'web-1'],
    ];
    Object.assign(process.stdout, { columns: 40, isTTY: true });
    const shown = columns(['LOCK', 'KIND', 'HELD FOR', 'HOLDER'], rows);
    expect(shown.slice(1)).toEqual([
      'orders:order:42  lock  a-host-w\u2026xxx:4711',
      '注文:\ufffd[31m       kept  web-1',
    ]);
    expect(shown[0]).toBe('\u001b[1mLOCK             KIND  HOLDER\u001b[22m');
    Object.assign(process.stdout, { isTTY: false });
    expect(columns(['LOCK', 'KIND', 'HELD FOR', 'HOLDER'], rows)[1]?.endsWith(':4711')).toBe(true);
  });
});
