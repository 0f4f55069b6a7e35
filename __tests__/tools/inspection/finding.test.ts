import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../../lib';
import { isRightRefused } from '../../../lib/redis/failure';
import { CANDIDATES } from '../../../lib/tools/inspection/candidates';
import { finderOf, findLocks } from '../../../lib/tools/inspection/find-locks';
import {
  type ContractClients,
  redis5Client,
  redis6Client,
  redis6Cluster,
  redis6Pool,
  redis6Sentinel,
} from '../../support/client-kinds';
import { startCluster } from '../../support/cluster';
import { glideClient } from '../../support/glide-kinds';
import { ioredisClient, ioredisCluster, ioredisSentinel } from '../../support/ioredis-kinds';
import { packageNamed } from '../../support/ioredis-packages';
import { connectToNode, Node } from '../../support/node';
import { atTheEnd, describePrivate, untilTheEnd } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

const ioredis = packageNamed('ioredis 5');

const KINDS = [
  ...[redis6Client, redis5Client, redis6Pool, redis6Cluster, redis6Sentinel, glideClient],
  ...[ioredisClient(ioredis), ioredisCluster(ioredis), ioredisSentinel(ioredis)],
];

describe.each(KINDS)('By $name', (kind) => {
  const registryKey = uniqueKey('finding');
  const registries: RedisLockRegistry[] = [];
  let opened: ContractClients;

  beforeAll(async () => {
    opened = await kind.open();
    for (const [i, client] of opened.clients.entries()) {
      const options = { registryKey, lockType: 'fair', name: `web-${i + 1}`, fencing: true } as const;
      registries.push(createRegistry(client, options).registry);
    }
  });

  afterAll(async () => {
    await Promise.all(registries.map((registry) => registry.close({ timeout: 0 })));
    await opened.close();
  });

  it('Through every kind of client, the locks of all servers are found, with their holders and queues', async () => {
    const [first, second] = registries as [RedisLockRegistry, RedisLockRegistry];
    const keys = ['a', 'b', 'c', 'd', 'e'];
    for (const key of keys) await first.obtain(key).lock();
    await first.semaphore('s', { permits: 3 }).lock({ permits: 2 });
    for (const waited of [second.obtain('a'), second.semaphore('s', { permits: 3 })]) {
      waited.lock({ permits: waited.key === 's' ? 2 : 1 }).catch(() => undefined);
      await until(async () => ((await waited.inspect()).waiting ?? 0) > 0, { within: 20_000 });
    }
    const { locks, missing, searched } = await findLocks(opened.clients[1], { registryKey });
    expect(missing).toEqual([]);
    expect(new Set(searched).size).toBe(/cluster/.test(kind.name) ? 3 : 1);
    expect(locks.map(({ key }) => key)).toEqual([...keys, 's']);
    const waiter = { position: 1, waiter: 'web-2', waitingFor: expect.any(Number) };
    expect(locks[0]).toMatchObject({
      ...{ lock: `${registryKey}:a`, registryKey, kind: 'lock', format: 'spring', type: 'fair', types: ['fair'] },
      ...{ isSure: true, holder: 'web-1', isKept: false, waiting: 1, queue: [waiter] },
      heldFor: expect.any(Number),
    });
    expect(locks[1]).toMatchObject({ type: null, types: ['spin', 'pub-sub', 'fair'], queue: null });
    expect(locks[5]).toMatchObject({
      ...{ kind: 'semaphore', format: 'shared', types: [], permits: 3, waiting: 1 },
      ...{ holders: [{ holder: 'web-1', permits: 2 }], queue: [{ ...waiter, kind: 'semaphore' }] },
    });
  });
});

it('A look at many locks of fair processes that listen takes little longer than if none did', async () => {
  const names = Array.from({ length: 15_000 }, (_, i) => `orders:order:${i}`);
  const owner = `web-7:4121:${'A'.repeat(22)}:1795557762000000`;
  const timeOf = async (channels: readonly string[]) => {
    const answers: Readonly<Record<string, (args: readonly string[]) => unknown>> = {
      TIME: () => ['1795557762', '0'],
      PUBSUB: ([what, ...rest]) => (what === 'NUMSUB' ? rest.flatMap((channel) => [channel, 1]) : channels),
      EVAL: () => ['0', names.length, '', ...names.flatMap((name) => [name, 'string'])],
      GETRANGE: () => owner,
      PTTL: () => 60_000,
    };
    const sendCommand = async ([command = '', ...args]: string[]) => answers[command]?.(args) ?? [];
    const startedAt = performance.now();
    const { locks } = await findLocks({ sendCommand } as never);
    expect(locks.filter(({ type }) => type === 'fair')).toHaveLength(channels.length);
    return performance.now() - startedAt;
  };
  await timeOf([]);
  const without = await timeOf([]);
  expect(await timeOf(names.map((name) => `{${name}}:grants:${owner}`))).toBeLessThan(3 * without);
});

describePrivate('A look at a cluster', () => {
  it('A look does not take the locks of a slot that is moving to another server for free', async () => {
    const cluster = await untilTheEnd(startCluster());
    const name = 'orders:1';
    const client = await cluster.connect();
    await client.set(name, `web-7:1:${'A'.repeat(22)}:1`, { PX: 600_000 });
    const look = async () => {
      const { locks, missing } = await findLocks(client as never);
      return [locks.map(({ lock }) => lock), missing];
    };
    expect(await look()).toEqual([[name], []]);
    const { slot, master: source } = await cluster.ownersOf(name);
    const target = cluster.masters.find((node) => node !== source) as Node;
    const { host, port } = target.address;
    const ids = await Promise.all([source, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))));
    await target.send('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', ids[0] as string);
    await source.send('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', ids[1] as string);
    await source.send('MIGRATE', host, String(port), name, '0', '5000');
    const moving = `${host}:${port} could not be asked about everything: a slot of the cluster is moving`;
    expect(await look()).toEqual([[], [moving]]);
  });
});

describePrivate('A look', () => {
  let server: Node;
  let client: Awaited<ReturnType<typeof connectToNode>>;

  beforeAll(async () => {
    server = await untilTheEnd(Node.start());
    client = await connectToNode(server.address);
    atTheEnd(() => client.destroy());
  });

  const ID = 'AAAAAAAAAAAAAAAAAAAAAA';
  const JAVA = '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11';
  const inAnHour = Date.now() + 3_600_000;

  /** Commands, as redis-cli takes them. */
  const send = async (...lines: readonly string[]) => {
    for (const line of lines) await server.send(...line.split(' '));
  };
  /** What is in Redis, and nothing else: commands as above. */
  const inRedis = (...lines: readonly string[]) => send('FLUSHALL', ...lines);

  it('A look says that a server refuses connections, and does not wait until a command is late', async () => {
    const away = await Node.start();
    const cut = await connectToNode(away.address);
    await away.kill();
    await until(() => !cut.isReady);
    const { missing, searched } = await findLocks(cut);
    cut.destroy();
    const reason = expect.stringMatching(
      `^127.0.0.1:${away.address.port} could not be asked: .*(ECONNREFUSED|ECONNRESET|Socket closed)`,
    );
    expect([missing, searched]).toEqual([[reason], []]);
  });

  it('A look at a large database is not a search each time: it looks at what the last search has found', async () => {
    const data = Array.from({ length: 10_001 }, (_, i) => [`data:${i}`, 'text'] as [string, string]);
    await client.mSet(data);
    await send(`SET orders:1 web-7:1:${ID}:1 PX 60000`);
    const find = finderOf(client, {});
    const searches = async () =>
      /cmdstat_scan:calls=(\d+)/.exec(String(await server.send('INFO', 'commandstats')))?.[1];
    expect((await find()).locks.map(({ lock }) => lock)).toEqual(['orders:1']);
    const before = await searches();
    await send('DEL orders:1');
    expect((await find()).locks).toEqual([]);
    await send(`SET orders:1 web-8:1:${ID}:1 PX 60000`);
    const found = await find();
    expect([found.locks.map(({ holder }) => holder), found.keys]).toEqual([['web-8:1'], 1]);
    expect(await searches()).toBe(before);
    await send('FLUSHALL');
    const again = finderOf(client, {});
    await again();
    await send(`SET orders:2 web-7:1:${ID}:1 PX 60000`);
    expect((await again()).locks.map(({ lock }) => lock)).toEqual(['orders:2']);
  });

  it('A look at the locks of one registryKey in a large database is not a search each time, either', async () => {
    await send(`FLUSHALL`, `SET orders:1 web-7:1:${ID}:1 PX 60000`);
    await client.mSet(Array.from({ length: 10_500 }, (_, i) => [`data:${i}`, 'text'] as [string, string]));
    const find = finderOf(client, { registryKey: 'orders' });
    expect((await find()).keys).toBe(1);
    await server.send('CONFIG', 'RESETSTAT');
    expect((await find()).locks.map(({ lock }) => lock)).toEqual(['orders:1']);
    expect(String(await server.send('INFO', 'commandstats'))).not.toContain('cmdstat_scan');
  });

  it('A look finds the locks among other data on the server, with one command for 500 keys', async () => {
    const longest = `kept@${'n'.repeat(64)}:${ID}:1795557762000000@1795557764000000`;
    await inRedis(
      `SET ours ${longest} PX 60000`,
      `SET spring ${JAVA} PX 60000`,
      `HSET redisson ${JAVA}:31 1`,
      'PEXPIRE redisson 60000',
      `ZADD shared ${inAnHour} write:web-7:1:${ID}:1`,
      `ZADD {waited}:queue 1 web-8:1:${ID}:1`,
      `RPUSH redisson_lock_queue:{java} ${JAVA}:32`,
      `HSET {entered}:waiters permits 3:1 semaphore:web-8:1:${ID}:1 1:${inAnHour}`,
      `SET data:uuid ${JAVA}-and-more PX 60000`,
      `SET data:long web-7:1:${ID}:1${'x'.repeat(200)} PX 60000`,
      `HSET data:cart ${JAVA}:31 1 other 1`,
      'ZADD data:scores 1 reader',
      'RPUSH data:list text',
    );
    await client.mSet(
      Array.from({ length: 5_000 }, (_, i) => [`data:${i}`, 'text '.repeat(i % 99)] as [string, string]),
    );
    const sent: string[] = [];
    const counting = {
      eval: client.eval.bind(client),
      evalSha: client.evalSha.bind(client),
      sendCommand(command: string[]) {
        sent.push(command[0] as string);
        return client.sendCommand(command);
      },
    };
    const { locks, keys, missing } = await findLocks(counting as never);
    expect(locks.map(({ lock }) => lock)).toEqual([
      ...['entered', 'java', 'ours', 'redisson', 'shared', 'spring', 'waited'],
    ]);
    expect([keys, missing]).toEqual([5_012, []]);
    expect(sent.filter((name) => name === 'EVAL').length).toBeLessThanOrEqual(12);
    // Those about the locks that there are.
    expect(sent.length).toBeLessThan(60);
  });

  it('A look with a registryKey finds a string that only its name makes a lock', async () => {
    await inRedis('SET orders:1 by-hand PX 60000', 'SET other:1 by-hand PX 60000');
    const shown = async (registryKey?: string) =>
      (await findLocks(client, { registryKey })).locks.map(({ lock }) => lock);
    expect([await shown('orders'), await shown()]).toEqual([['orders:1'], []]);
  });

  it('A look leaves no WRONGTYPE at the server, whatever the application has there', async () => {
    await inRedis(
      'SET {orders:1}:queue text',
      'LPUSH {orders:1}:waiters text',
      'SET redisson_lock_queue:{orders:1} text',
      'XADD stream * a b',
      'SADD orders:set a',
      'RPUSH orders:list a',
      'HSET orders:0 web 1',
      'ZADD orders:1 1 a',
      'SET orders:2 x',
      `SET orders:lock web-1:${ID}:1 PX 60000`,
      'CONFIG RESETSTAT',
    );
    const { locks, missing } = await findLocks(client);
    expect([locks.map(({ lock }) => lock), missing]).toEqual([['orders:lock'], []]);
    expect((await findLocks(client, { key: '1' })).locks).toEqual([]);
    expect(String(await server.send('INFO', 'errorstats'))).not.toContain('WRONGTYPE');
  });

  it('A look passes over keys that its user may not read, and learns why', async () => {
    await inRedis(`SET orders:1 web-1:1:${ID}:1 PX 60000`, 'SET data text');
    await send('ACL SETUSER some on nopass +@all resetkeys ~orders:*');
    const some = await connectToNode(server.address);
    atTheEnd(() => some.destroy());
    await some.sendCommand(['AUTH', 'some', 'any']);
    const [cursor, looked, refused, ...found] = (await some.eval(CANDIDATES.source, {
      arguments: ['0', '*', '500', '', ''],
    })) as unknown[];
    expect([cursor, looked, refused, isRightRefused(new Error(String(refused)))]).toEqual(['0', 2, refused, true]);
    expect(found).toEqual(['orders:1', 'string']);
  });

  it('A look takes a glob as Redis does', async () => {
    const names = ['orders:a*b', 'orders:axb', 'orders:[c]', 'orders:d-e', 'orders:f?'];
    // Of other types SCAN is asked for more names, for those of queues.
    await inRedis(...names.map((name) => `SET ${name} web-1:${ID}:1 PX 60000`), `HSET orders:axbc web-1/${ID}:1 1`);
    const matching = async (match: string) => {
      const { locks } = await findLocks(client, { registryKey: 'orders', match });
      return locks.map(({ key }) => key);
    };
    expect(await matching('a*b')).toEqual(['a*b', 'axb']);
    expect(await matching('a\\*b')).toEqual(['a*b']);
    expect(await matching('\\[c\\]')).toEqual(['[c]']);
    expect(await matching('[^a-z]*')).toEqual(['[c]']);
    expect(await matching('[d-f]??')).toEqual(['d-e']);
    expect(await matching('f?')).toEqual(['f?']);
  });

  it('A look that waits for a slow answer says what is left of a shared lock, and how long it is held, after that', async () => {
    const [acquiredAt, end] = [Date.now() - 1_000, Date.now() + 60_000];
    await inRedis(`ZADD orders:1 ${end} read:web-1:${ID}:${acquiredAt * 1_000}`);
    const sendCommand = async (command: string[]) => {
      if (command[0] === 'PUBSUB') await setTimeout(500);
      return client.sendCommand(command);
    };
    const slow = Object.create(client, {
      withCommandOptions: { value: undefined },
      sendCommand: { value: sendCommand },
    });
    const [lock] = (await findLocks(slow)).locks;
    expect(lock?.remaining).toBeLessThanOrEqual(59_510);
    expect(lock?.heldFor).toBeGreaterThanOrEqual(1_490);
  });

  it('A look finds a lock that was free when its queue was found, and is held by now', async () => {
    await inRedis(`RPUSH redisson_lock_queue:{a} web-1/${ID}:1`);
    const sendCommand = async (command: string[]) => {
      const reply = await client.sendCommand(command);
      if (command[0] === 'EVAL') await send(`HSET a web-1/${ID}:2 1`);
      return reply;
    };
    const slow = Object.create(client, {
      withCommandOptions: { value: undefined },
      sendCommand: { value: sendCommand },
    });
    expect((await findLocks(slow)).locks).toMatchObject([{ lock: 'a', holder: 'web-1', waiting: 1 }]);
  });

  it('A look leaves out those that wait in a queue of Redisson whose time there is over', async () => {
    await inRedis();
    const [dead, alive] = ['web-1', 'web-2'].map((name) => `${name}/${ID}:1`);
    for (const name of ['old', 'live']) {
      await send(`RPUSH redisson_lock_queue:{${name}} ${dead}`, `ZADD redisson_lock_timeout:{${name}} 1 ${dead}`);
    }
    await send(`RPUSH redisson_lock_queue:{live} ${alive}`, `ZADD redisson_lock_timeout:{live} ${inAnHour} ${alive}`);
    expect((await findLocks(client)).locks).toMatchObject([{ lock: 'live', waiting: 1, queue: [{ waiter: 'web-2' }] }]);
  });

  it('A look does not take a fair lock for one of pub-sub while its process listens for others', async () => {
    await inRedis();
    const { registry } = createRegistry(client, { registryKey: 'a*{b}', lockType: 'fair' });
    const leases = [1, 2].map(() => registry.obtain('c').lock());
    await (await leases[0])?.unlock();
    const lease = await leases[1];
    const shown = async () => (await findLocks(client)).locks.map(({ lock, type, waiting }) => [lock, type, waiting]);
    await until(async () => String(await server.send('PUBSUB', 'NUMSUB', 'a*{b}-channel:a*{b}:c')).endsWith('1'));
    expect(await shown()).toEqual([['a*{b}:c', 'fair', 0]]);
    await lease?.unlock();
    await registry.close();
  });

  it('A look takes a form of Java for a lock while somebody listens for its release', async () => {
    await inRedis(`SET a:b:c ${JAVA} PX 60000`, `HSET cart:7 ${JAVA}:2 1`, 'PEXPIRE cart:7 60000');
    const subscriber = await connectToNode(server.address);
    for (const channel of ['a:b-channel:a:b:c', 'redisson_lock__channel:{cart:7}']) {
      await subscriber.subscribe(channel, () => undefined);
    }
    const shown = async () => (await findLocks(client)).locks.map(({ isSure, owner }) => [isSure, owner]);
    expect(await shown()).toEqual([
      [true, JAVA],
      [true, `${JAVA}:2`],
    ]);
    subscriber.destroy();
    await until(async () => (await shown()).every(([isSure, owner]) => !isSure && owner === 'not shown'));
  });
});
