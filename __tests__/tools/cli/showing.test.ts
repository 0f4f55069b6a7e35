import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type LockType, RedisLockRegistry } from '../../../lib';
import { columns } from '../../../lib/tools/cli/output';
import { Node } from '../../support/node';
import { describePrivate, untilTheEnd } from '../../support/private-redis';
import { Program } from '../../support/program';
import { until } from '../../support/until';
import { ask, COMMAND, linesOf } from './command';

const UNKNOWN = ', in no form that is known';
const JAVA = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';

const at = ({ address }: Node, database = '') => ({
  REDIS_URL: `redis://${address.host}:${address.port}${database}`,
});

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
    server = await untilTheEnd(Node.start());
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
    await server.send('SET', 'java:order:1', JAVA, 'PX', '600000');
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
      'java:order:1': expect.objectContaining({
        ...plain,
        isSure: false,
        format: 'spring',
        holder: 'not shown',
        typeName: 'others (UUID)',
      }),
      'orders:order:1': expect.objectContaining({
        ...plain,
        typeName: 'spin, pub-sub or fair',
        holder: 'web-1',
        waiting: null,
      }),
      'orders:kept': expect.objectContaining({ ...plain, isKept: true, holder: 'web-1' }),
      'orders:render': expect.objectContaining({
        ...{ kind: 'semaphore', format: 'shared', permits: 2, waiting: 1, registryKey: 'orders', key: 'render' },
        holders: [expect.objectContaining({ holder: 'web-2' }), expect.objectContaining({ holder: 'web-1' })],
      }),
      'orders:prices': expect.objectContaining({ kind: 'write', holder: 'web-1', fencingToken: expect.any(Number) }),
      'jobs:key:1': expect.objectContaining({
        ...plain,
        type: 'fair',
        typeName: 'fair',
        holder: 'web-3',
        waiting: 1,
        isWaitingExact: true,
        queue,
      }),
      'mail:key:1': expect.objectContaining({
        ...plain,
        type: 'pub-sub',
        waiting: 1,
        isWaitingExact: false,
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
    const [awaited, older] = await Promise.all([
      ask(['ls', '--json', '--waiting', '--sort', 'held'], env),
      ask(['ls', '--json', '--longer-than', '1h'], env),
    ]);
    expect(locks(awaited).sort()).toEqual(['jobs:key:1', 'mail:key:1', 'orders:render', 'queue:key:1', 'stock:key:1']);
    // A semaphore may have several holders: the longest hold counts.
    const longest = (holders: { heldFor: number | null }[]) => Math.max(...holders.map((one) => one.heldFor ?? -1));
    const heldFor = linesOf(awaited).map(({ holders }) => longest(holders));
    expect(heldFor).toEqual([...heldFor].sort((one, other) => other - one));
    expect(locks(older)).toEqual([]);
    expect([none.exitCode, none.stdout]).toEqual([0, expect.stringMatching(/No lock under "typo:".*every registry/)]);
    const [long, awaitedLong] = await Promise.all([
      ask(['ls', '--longer-than', '1h'], env),
      ask(['ls', '--longer-than', '1h', '--waiting', '--match', 'key:*'], env),
    ]);
    const database = /\nSearched on 127\.0\.0\.1:\d+, database 0\.\n$/;
    expect([long.stdout, awaitedLong.stdout]).toEqual([
      expect.stringMatching(
        /^No lock of this library or of Java is known to be held for longer than 1h\. .*--registry-key KEY finds others too\.\n/,
      ),
      expect.stringMatching(
        /^No lock that matches key:\* of this library or of Java is held for longer than 1h and waited for\. .*\n/,
      ),
    ]);
    expect([long.stdout, awaitedLong.stdout, none.stdout]).toEqual(Array(3).fill(expect.stringMatching(database)));
    expect([long.exitCode, long.stderr]).toEqual([67, expect.stringMatching(/not known of java:order:1 for how long/)]);
    expect([awaitedLong.exitCode, awaitedLong.stderr]).toEqual([0, '']);
    // Of a lock of type spin, Redis does not say who waits.
    expect(awaited.exitCode).toBe(67);
    expect(awaited.stderr).toMatch(/not known of java:order:1, orders:kept, orders:order:1.* whether anybody waits/);
  });

  it('is the lock of that name, or the candidates where a key is that of several', async () => {
    const [one, several, missing] = await Promise.all([
      ask(['inspect', 'render'], env),
      ask(['inspect', 'order:1'], env),
      ask(['inspect', 'user:2'], env),
    ]);
    expect([one.exitCode, several.exitCode, missing.exitCode]).toEqual([0, 0, 66]);
    expect(one.stdout).toMatch(
      /^lock +orders:render\nregistryKey +orders\nkind +semaphore 2\/2\n(.*\n)*waiting +1\nqueue +1\. web-1, for .*\n$/,
    );
    expect(several.stdout).toMatch(/java:order:1 +others \(UUID\)\? +not shown.*\norders:order:1.*web-1/);
    expect(missing.stderr).toBe('redis-locks: Nobody holds a lock "user:2" in any registry, database 0\n');
  });

  it('is released by its whole name, and by no name that several have', async () => {
    const both = await ask(['release', 'order:1', '--yes'], env);
    expect([both.exitCode, both.stderr]).toEqual([64, expect.stringContaining('orders:order:1')]);
    const lease = await (await registryOf('pub-sub', 'shop:eu', 'web-5')).obtain('cart').lock();
    const waiting = (await registryOf('pub-sub', 'shop:eu', 'web-6')).obtain('cart').lock();
    await until(async () => String(await server.send('PUBSUB', 'CHANNELS', 'shop:eu-channel:*')) !== '');
    const released = await ask(['release', 'shop:eu:cart', '--yes'], env);
    expect([released.exitCode, released.stdout]).toEqual([
      0,
      'Released "shop:eu:cart", held by web-5. Its process could not be told.\n',
    ]);
    await (await waiting).unlock();
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
  });
});

describePrivate('A key that may be data of an application', () => {
  const NAME = 'idempotency:order:42';
  let server: Node;
  let env: { REDIS_URL: string };

  beforeAll(async () => {
    server = await untilTheEnd(Node.start());
    env = at(server);
  });

  beforeEach(async () => {
    await server.send('FLUSHALL');
    await server.send('SET', NAME, JAVA, 'PX', '600000');
    await server.send('HSET', 'cart:7', `${JAVA}:2`, '1');
    await server.send('PEXPIRE', 'cart:7', '600000');
  });

  const isThere = async (name = NAME) => (await server.send('EXISTS', name)) === 1;

  it('is shown with nothing of its value', async () => {
    const looks = ['ls', 'ls --json', `inspect ${NAME}`, 'inspect cart:7 --json', 'inspect 42'];
    const asked = await Promise.all(looks.map((words) => ask(words.split(' '), env)));
    for (const { exitCode, stdout, stderr } of asked) {
      expect([exitCode, stdout]).toEqual([0, expect.stringContaining('not shown')]);
      expect(stdout + stderr).not.toContain(JAVA.slice(0, 4));
    }
    expect(asked[2]?.stdout).toMatch(/may be data of an application\.\n.*--registry-key/);
    const watched = new Program([...COMMAND, 'watch', '--json', '--interval', '50ms'], env);
    const names = () => watched.lines.map((line) => JSON.parse(line)).map(({ lock, holder }) => `${lock} ${holder}`);
    await until(async () => {
      // The first look has no changes.
      await server.send('SET', `session:${Date.now()}`, JAVA, 'PX', '60000');
      return names().length > 0;
    });
    watched.child.kill('SIGINT');
    expect([await watched.ended, names()[0]]).toEqual([0, expect.stringMatching(/^session:\d+ not shown$/)]);
  });

  it('is shown, and released, as a lock by its registryKey', async () => {
    const asked = { ...env, REDIS_LOCKS_REGISTRY_KEY: 'idempotency' };
    const [found] = linesOf(await ask(['ls', '--json'], asked));
    expect(found).toMatchObject({ lock: NAME, isSure: true, owner: JAVA });
    // It may be a session of the application all the same: the registryKey does not prove that it is a lock.
    const refused = await ask(['release', 'order:42', '--yes'], asked);
    expect([refused.exitCode, refused.stderr]).toEqual([64, expect.stringMatching(/may be data.*--may-be-data/)]);
    expect(await isThere()).toBe(true);
    const released = await ask(['release', 'order:42', '--yes', '--may-be-data'], asked);
    expect([released.exitCode, await isThere()]).toEqual([0, false]);
  });

  it.each<[proof: string, name: string, proving: string[]]>([
    ['a fencing token', NAME, [`SET {${NAME}}:fence 7`]],
    ['a queue', NAME, [`ZADD {${NAME}}:queue 1 web-1:${'A'.repeat(22)}:1`]],
    ['a token of Redisson', 'cart:7', ['SET redisson_lock_token:{cart:7} 7']],
  ])('is released as a lock of Java that has a companion: %s', async (_proof, name, proving) => {
    for (const command of proving) await server.send(...command.split(' '));
    const released = await ask(['release', name, '--yes'], env);
    expect([released.exitCode, await isThere(name)]).toEqual([0, false]);
  });

  it.each([
    ['the end of its name', ['order:42'], /give its whole name, and --may-be-data/],
    [
      'the end of its name, though it may be data',
      ['order:42', '--may-be-data'],
      /give its whole name, and --may-be-data/,
    ],
    ['its name alone', [NAME], /"idempotency:order:42" may be data of an application; give --may-be-data/],
    ['its name alone, a hash', ['cart:7'], /"cart:7" may be data/],
  ])('is not released by %s', async (_what, words, message) => {
    const refused = await ask(['release', '--yes', ...words], env);
    expect([refused.exitCode, refused.stdout, refused.stderr]).toEqual([64, '', expect.stringMatching(message)]);
    expect([await isThere(), await isThere('cart:7')]).toEqual([true, true]);
  });

  it('is released by its whole name where the caller says that it may be data', async () => {
    const released = await ask(['release', NAME, '--yes', '--may-be-data'], env);
    expect([released.exitCode, released.stdout]).toEqual([0, `Released "${NAME}", whose holder is not shown.\n`]);
    expect(await isThere()).toBe(false);
    const hash = await ask(['release', 'cart:7', '--yes', '--may-be-data', '--json'], env);
    expect([hash.exitCode, hash.stdout.includes(JAVA), await isThere('cart:7')]).toEqual([0, false, false]);
  });

  it('is no holder that `run` names', async () => {
    await server.send('SET', 'session:7', 'a secret', 'PX', '600000');
    const ran = await ask(['run', '7', '--registry-key', 'session', '--wait', '4s', '--', 'true'], env);
    const [waiting, late] = ran.stderr.split('\n');
    expect([ran.exitCode, waiting, late]).toEqual([
      75,
      'redis-locks: waits for the lock "7", another program holds it',
      'redis-locks: The lock "7" is not free, another program holds it',
    ]);
  });
});

describePrivate('What has the name of a lock and is none', () => {
  let server: Node;
  let env: { REDIS_URL: string };

  beforeAll(async () => {
    server = await untilTheEnd(Node.start());
    env = at(server, '/3');
    await server.send('SELECT', '3');
  });

  it.each([
    ['string', 'SET orders:order:1 hunter2', UNKNOWN],
    ['string', 'SET orders:order:1 ', UNKNOWN],
    // What is read of it ends within a character.
    ['string', `SET orders:order:1 a${'ж'.repeat(200)}`, UNKNOWN],
    ['string', `SET orders:order:1 ${JAVA}`, ', in the form of Spring, redis-semaphore, pottery and sherlock (UUID)'],
    [
      'string',
      `SET orders:order:1 ${'0f'.repeat(16)}`,
      ', in the form of redis-py, redlock and redlock-universal (32 hex digits)',
    ],
    ['hash', 'HSET orders:order:1 hunter2 hunter2', ''],
    ['set', 'SADD orders:order:1 hunter2', ''],
    ['list', 'RPUSH orders:order:1 hunter2', ''],
    ['zset', 'ZADD orders:order:1 1 hunter2', ''],
    ['stream', 'XADD orders:order:1 * hunter2 1', ''],
  ])(
    'is in the way, with its type and how to remove it, and nothing of its value: a %s by %j',
    async (type, command, form) => {
      const release = 'release order:1 --registry-key orders --may-be-data';
      const advice =
        type === 'string'
          ? `If it is a lock, its holder may be at work. To remove it: redis-locks ${release}`
          : 'To remove it: redis-cli -n 3 UNLINK orders:order:1';
      await server.send('FLUSHALL');
      await server.send(...command.split(' '));
      const words = [
        'inspect orders:order:1',
        'inspect order:1',
        'release order:1 --yes',
        'inspect orders:order:1 --json',
      ];
      for (const asked of await Promise.all(words.map((line) => ask(line.split(' '), env)))) {
        expect([asked.exitCode, asked.stderr]).toEqual([
          65,
          `redis-locks: "orders:order:1" is in the way: a ${type} without expiry, of another program${form}. While it is there, no lock of this name can be taken. ${advice}\n`,
        ]);
      }
      const json = await ask(['inspect', 'order:1', '--json'], env);
      expect(linesOf(json)).toEqual([{ lock: 'orders:order:1', kind: 'in the way', keyType: type, remaining: null }]);
      const ofRegistry = await ask(['inspect', 'order:1', '--registry-key', 'orders', '--json'], env);
      expect(ofRegistry.stdout + ofRegistry.stderr).not.toMatch(/hunter2|Nobody/);
      expect([ofRegistry.exitCode, ofRegistry.stderr !== '']).toEqual(type === 'string' ? [0, false] : [65, true]);
      if (type !== 'string') return;
      const released = await ask([...release.split(' '), '--yes'], env);
      expect([released.exitCode, await server.send('EXISTS', 'orders:order:1')]).toEqual([0, 0]);
    },
  );

  it('is said to expire, and to be a lock of another type than the one that was asked for', async () => {
    await server.send('FLUSHALL');
    await server.send('SET', 'a b', 'x', 'PX', '600000');
    const expiring = await ask(['inspect', 'a b'], env);
    expect(expiring.stderr).toMatch(
      /a string that expires in (10m0s|9m\d+s), .* release 'a b' --registry-key '' --may-be-data\n$/,
    );
    await server.send('SET', 'orders:order:1', `web-1:${'A'.repeat(22)}:1`, 'PX', '600000');
    const other = await ask(['inspect', 'orders:order:1', '--type', 'redisson'], env);
    expect([other.exitCode, other.stderr]).toEqual([
      65,
      expect.stringMatching(/a string that .* is a lock, and not of type redisson: look without --type\n$/),
    ]);
  });

  it('is nothing that belongs to a lock, or is left of one', async () => {
    await server.send('FLUSHALL');
    await server.send('SET', '{42}:fence:orders:{42}', '7');
    await server.send('SET', 'redisson_lock_token:orders:{42}', '7');
    await server.send('ZADD', 'orders:{42}', '-1', 'semaphore:held', '5', `semaphore:web-1:${'A'.repeat(22)}:1`);
    for (const key of ['{42}', 'orders:{42}']) {
      const asked = await ask(['inspect', key], env);
      expect([asked.exitCode, asked.stderr]).toEqual([
        66,
        `redis-locks: Nobody holds a lock "${key}" in any registry, database 3\n`,
      ]);
    }
  });

  it('may be in another database, and the one that was searched is named', async () => {
    await server.send('FLUSHALL');
    await server.send('SET', 'orders:order:1', `web-1:${'A'.repeat(22)}:1`, 'PX', '600000');
    const [list, lines, one] = await Promise.all([
      ask(['ls'], at(server)),
      ask(['ls', '--json'], at(server)),
      ask(['inspect', 'order:1'], at(server)),
    ]);
    expect([lines.exitCode, lines.stdout, lines.stderr]).toEqual([
      0,
      '',
      expect.stringMatching(/^redis-locks: Searched on [\d.:]+, database 0 \(there are keys in database 3 too\)\n$/),
    ]);
    expect([list.exitCode, list.stdout]).toEqual([
      0,
      expect.stringMatching(/^No lock .*\nSearched on [\d.:]+, database 0 \(there are keys in database 3 too\)\.\n$/),
    ]);
    expect([one.exitCode, one.stderr]).toEqual([
      66,
      'redis-locks: Nobody holds a lock "order:1" in any registry, database 0 (there are keys in database 3 too)\n',
    ]);
  });
});

describePrivate('A holder whose clock is ahead of that of Redis', () => {
  it('is shown as one that has the lock for a time that is not known', async () => {
    const server = await untilTheEnd(Node.start());
    const later = (Date.now() + 3_600_000) * 1_000;
    await server.send('SET', 'orders:order:1', `web-1:${'A'.repeat(22)}:${later}`, 'PX', '600000');
    const env = at(server);
    const [list, long, json, one] = await Promise.all(
      ['ls', 'ls --longer-than 1m', 'ls --json', 'inspect order:1'].map((words) => ask(words.split(' '), env)),
    );
    expect(list?.stdout).toMatch(/HELD .*\norders:order:1 +spin… +web-1 +\? /);
    expect(long).toMatchObject({
      exitCode: 67,
      stderr: expect.stringMatching(/not known of orders:order:1 for how long/),
    });
    expect(linesOf(json as { stdout: string })[0]).toMatchObject({ heldFor: null, acquiredAt: expect.any(Number) });
    expect(one?.stdout).toMatch(/\nheld for +not known: the clock of its process is ahead of that of Redis\n/);
  });
});

describePrivate('A lock of any name', () => {
  it('is released, and no other one', async () => {
    const server = await untilTheEnd(Node.start());
    const onWarning = () => undefined;
    const registry = new RedisLockRegistry(await server.admin(), {
      registryKey: '',
      lockType: 'redisson',
      name: 'me',
      onWarning,
    });
    const keys = [':jobs:1', 'jobs:1', 'a:b:c', ':', 'a:', 'plain'];
    for (const key of keys) await registry.semaphore(key, { permits: 1 }).lock();
    for (const [i, key] of keys.entries()) {
      expect(await ask(['release', key, '--yes'], at(server))).toMatchObject({
        exitCode: 0,
        stdout: `Released "${key}", held by me. Its process could not be told.\n`,
      });
      const left = await Promise.all(keys.map((one) => server.send('EXISTS', one)));
      expect(left).toEqual(keys.map((_, at) => (at > i ? 1 : 0)));
    }
    await registry.close({ timeout: 0 });
    // Of Spring, with an empty registryKey, and of nobody.
    for (const name of [':order:42', 'plain']) {
      await server.send('SET', name, JAVA, 'PX', '60000');
      const released = await ask(['release', name, '--yes', '--may-be-data'], at(server));
      expect([released.exitCode, released.stderr, await server.send('EXISTS', name)]).toEqual([0, '', 0]);
    }
  });
});

describePrivate('The lock of another program', () => {
  const words = ['release', 'order:1', '--registry-key', 'orders', '--may-be-data', '--yes'];

  it('is released though its value is no UTF-8, and its key is gone then', async () => {
    const server = await untilTheEnd(Node.start());
    const admin = await server.admin();
    for (const expiry of [[], ['PX', '60000']]) {
      await admin.sendCommand(['SET', 'orders:order:1', Buffer.from([0xff, 0xfe, 0x41]), ...expiry]);
      const released = await ask(words, at(server));
      expect([released.exitCode, released.stderr]).toEqual([0, '']);
      expect(released.stdout).toBe('Released "orders:order:1", whose holder is not shown.\n');
      expect(await admin.exists('orders:order:1')).toBe(0);
    }
  });
});

describePrivate('A lock without a registryKey', () => {
  it('is taken, shown and released by its name alone, and so is that of another program', async () => {
    const server = await untilTheEnd(Node.start());
    const env = at(server);
    const program = `
      const socket = require('node:net').connect(${server.address.port}, () => socket.write('EXISTS report\\r\\n'));
      socket.once('data', (reply) => socket.destroy(process.stdout.write(reply)));`;
    const command = ['run', 'report', '--registry-key', '', '--', process.execPath, '-e', program];
    expect((await ask(command, env)).stdout).toBe(':1\r\n');
    const registry = new RedisLockRegistry(await server.admin(), { registryKey: '', lockType: 'pub-sub', name: 'me' });
    await registry.obtain('report').lock();
    const [json, one] = await Promise.all([ask(['ls', '--json'], env), ask(['inspect', 'report'], env)]);
    expect(linesOf(json)).toMatchObject([
      { lock: 'report', registryKey: '', key: 'report', holder: 'me', isSure: true },
    ]);
    expect(one.stdout).toMatch(/^registryKey +''\n/m);
    expect((await ask(['release', 'report', '--yes'], env)).stdout).toBe(
      'Released "report", held by me. Its process could not be told.\n',
    );
    await registry.close({ timeout: 0 });
    const ours = ['--registry-key', ''];
    await server.send('SET', 'report', '0f'.repeat(16), 'PX', '60000');
    const shown = (await ask(['inspect', 'report', ...ours], env)).stdout;
    expect(shown).toMatch(/^type +others \(32 hex digits\)\n +as redis-py, redlock and .* write it\n/m);
    expect(shown).toMatch(/^holder +not shown$/m);
    const refused = await ask(['release', 'report', ...ours, '--yes'], env);
    expect([refused.exitCode, await server.send('EXISTS', 'report')]).toEqual([64, 1]);
    const released = await ask(['release', 'report', ...ours, '--yes', '--may-be-data'], env);
    expect([released.exitCode, await server.send('EXISTS', 'report')]).toEqual([0, 0]);
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

  it('are cut to the terminal also where a name is very long, or where there are very many', () => {
    Object.assign(process.stdout, { columns: 40, isTTY: true });
    const long = `orders:${'x'.repeat(3_000)}:42`;
    const measuring = jest.spyOn(String.prototype, 'replace');
    const shown = columns(['LOCK'], [[long]])[1];
    const measured = measuring.mock.contexts.reduce<number>((sum, text) => sum + String(text).length, 0);
    measuring.mockRestore();
    expect(shown).toBe(`orders:${'x'.repeat(13)}\u2026${'x'.repeat(16)}:42`);
    // A letter that is left out costs one letter, and not the length of the text.
    expect(measured).toBeLessThan(20 * long.length);
    Object.assign(process.stdout, { isTTY: false });
    const rows = Array.from({ length: 200_000 }, () => ['a']);
    expect(columns(['LOCK'], rows)).toHaveLength(200_001);
  });
});
