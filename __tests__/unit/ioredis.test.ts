import { EventEmitter } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import { ClusterClient } from '../../lib/clients/ioredis/clustered';
import type { SingleIoredis } from '../../lib/clients/ioredis/instance';
import { OwnConnection, SingleClient } from '../../lib/clients/ioredis/single';
import { ConnectionMonitor } from '../../lib/redis/connection';
import { untilCollected } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { lateReply, silence } from '../support/mock-redis';

const time = FakeClock.install();

/** A copy that ioredis makes of an instance, with other options. */
function copied() {
  const own = Object.assign(new EventEmitter(), {
    status: 'connecting',
    connect: async () => undefined,
    disconnect: jest.fn(),
    ...{ subscribe: async () => 1, unsubscribe: async () => 1, sunsubscribe: async () => 1 },
    ssubscribe: jest.fn(async (): Promise<unknown> => 1),
    stream: { unref: jest.fn(), destroy: jest.fn() },
    /** Connected, or closed for good. */
    becomes(status: 'ready' | 'end') {
      own.status = status;
      own.emit(status);
    },
  });
  return own;
}

type Copy = ReturnType<typeof copied>;

/** An instance, and the copies that were made of it. */
function instance(host = 'h', port = 1) {
  const copies: Copy[] = [];
  const duplicate = jest.fn((_options: object) => {
    copies.push(copied());
    return copies.at(-1);
  });
  return Object.assign(new EventEmitter(), { options: { host, port }, status: 'ready', duplicate, copies });
}

it('A command that ioredis has queued is not rejected by the failure of a reconnect', async () => {
  const reply = lateReply();
  const redis = Object.assign(new EventEmitter(), {
    options: { autoResendUnfulfilledCommands: false },
    status: 'ready',
    call: jest.fn((..._words: string[]) => reply.promise),
  });
  const client = new SingleClient(redis as unknown as SingleIoredis);
  const lost = expect(client.eval('return 1', { keys: ['key'] })).rejects.toThrow('connection was lost');
  redis.emit('close');
  await lost;
  const queued = client.eval('return 1', { keys: ['key'] });
  redis.emit('close');
  redis.emit('ready');
  reply.resolve(1);
  expect(await queued).toBe(1);
  // What was issued over each connection is rejected with that one.
  redis.call.mockImplementation(silence);
  for (const _ of ['the second', 'the third']) {
    const cut = expect(client.eval('return 1', { keys: ['key'] })).rejects.toThrow('connection was lost');
    redis.emit('close');
    await cut;
    redis.emit('ready');
  }
  // Older versions know the keys only of commands in small letters.
  expect(redis.call.mock.calls[0]?.[0]).toBe('eval');
});

it('Nothing is kept of a command of ioredis that was answered', async () => {
  let reply: object | undefined = {};
  const reference = new WeakRef(reply);
  const options = { autoResendUnfulfilledCommands: false };
  const redis = Object.assign(new EventEmitter(), { options, status: 'ready', call: async () => reply });
  const client = new SingleClient(redis as unknown as SingleIoredis);
  await client.sendCommand(['GET', 'key']).then(() => undefined);
  reply = undefined;
  await untilCollected(reference);
  expect(client.isOpen).toBe(true);
});

it('A client of ioredis is connected anew when it has another socket', () => {
  const redis = Object.assign(new EventEmitter(), { options: {}, status: 'ready', stream: {} });
  const client = new SingleClient(redis as unknown as SingleIoredis);
  const epochs = [client.socketEpoch, client.socketEpoch];
  redis.stream = {};
  expect([...epochs, client.socketEpoch, client.socketEpoch]).toEqual([1, 1, 2, 2]);
});

it('A cluster of ioredis is listened to once, and by nothing when nobody listens and no channel is subscribed', async () => {
  const cluster = Object.assign(new EventEmitter(), { status: 'ready', slots: [], nodes: () => [] });
  const client = new ClusterClient(cluster as never);
  const heard = jest.fn();
  for (const event of ['ready', 'end']) client.on(event, heard);
  expect(cluster.eventNames().map((event) => cluster.listenerCount(event))).toEqual([1, 1, 1, 1, 1]);
  cluster.emit('ready');
  for (const event of ['ready', 'end']) client.off(event, heard);
  expect([heard.mock.calls.length, cluster.eventNames()]).toEqual([1, []]);
  const refused = expect(client.subscribe('channel', heard)).rejects.toBeUndefined();
  expect(cluster.eventNames()).toEqual(['refresh', 'end']);
  await client.unsubscribe('channel');
  await refused;
  expect(cluster.eventNames()).toEqual([]);
});

it('A command that waits for a connection of our own to ioredis is rejected when that is destroyed', async () => {
  const { copies, ...original } = instance();
  const own = new OwnConnection(original as unknown as SingleIoredis);
  Object.assign(copies[0] as Copy, { call: silence });
  const rejected = expect(own.sendCommand(['PING'])).rejects.toThrow('connection was lost');
  own.destroy();
  await rejected;
});

it('A connection of our own to ioredis keeps no process alive, and says when it is closed for good', async () => {
  const stream = { unref: jest.fn() };
  const redis = Object.assign(new EventEmitter(), { status: 'connecting', connect: async () => undefined, stream });
  const own = new OwnConnection({ duplicate: () => redis } as unknown as SingleIoredis);
  const failed = jest.fn();
  own.on('error', failed);
  const connected = own.connect();
  redis.emit('connect');
  expect([stream.unref.mock.calls.length, own.socketEpoch, own.isOpen]).toEqual([1, 1, true]);
  for (const text of ['the first error', 'the last error']) redis.emit('error', new Error(text));
  redis.status = 'end';
  redis.emit('end');
  await expect(connected).rejects.toThrow('the last error');
  expect([failed.mock.calls.length, own.isOpen]).toEqual([3, false]);
});

it('A connection of our own to ioredis is ready again when its channels are confirmed: what was published before was missed', async () => {
  const original = instance();
  const own = new OwnConnection(original as unknown as SingleIoredis);
  const [redis] = original.copies as [Copy];
  redis.becomes('ready');
  await own.sSubscribe('channel', () => undefined);
  const ready = jest.fn();
  own.on('ready', ready);
  await time.advance(0);
  ready.mockClear();
  const confirmed = lateReply();
  redis.ssubscribe.mockReturnValue(confirmed.promise);
  redis.emit('close');
  redis.becomes('ready');
  await time.advance(100);
  expect(ready).not.toHaveBeenCalled();
  confirmed.resolve(1);
  await time.advance(0);
  expect(ready).toHaveBeenCalledTimes(1);
});

it('A connection of our own to ioredis has none of the options that would fail its commands, or send them twice', () => {
  const original = instance();
  new OwnConnection(original as unknown as SingleIoredis, { readOnly: false });
  expect(original.duplicate.mock.calls[0]?.[0]).toStrictEqual({
    ...{ lazyConnect: true, readOnly: false, enableOfflineQueue: true, maxRetriesPerRequest: null },
    ...{ autoResubscribe: false, autoResendUnfulfilledCommands: false, enableAutoPipelining: false },
    commandTimeout: undefined,
    disconnectTimeout: 1,
  });
});

it('A connection of our own to ioredis ends when a channel that was subscribed is refused: who listens is not told', async () => {
  const { copies, ...original } = instance();
  const own = new OwnConnection(original as unknown as SingleIoredis);
  const [redis] = copies as [Copy];
  redis.becomes('ready');
  await Promise.all([own.subscribe('channel', jest.fn()), own.subscribe('second', jest.fn())]);
  redis.subscribe = () => Promise.reject(new Error('NOPERM no rights for this channel'));
  await expect(own.subscribe('other', jest.fn())).rejects.toThrow('NOPERM');
  expect(own.isOpen).toBe(true);
  redis.becomes('ready');
  await time.advance(0);
  expect([own.isOpen, redis.disconnect.mock.calls.length]).toEqual([false, 1]);
});

it.each([
  ['ends for good', (_own: OwnConnection, redis: Copy) => redis.becomes('end')],
  ['is destroyed', (own: OwnConnection) => own.destroy()],
])('Who waits for a connection of our own to ioredis is told when it %s', async (_how, end) => {
  const { copies, ...original } = instance();
  const own = new OwnConnection(original as unknown as SingleIoredis);
  const [redis] = copies as [Copy];
  const connected = expect(own.connect()).rejects.toThrow('the connection was closed');
  const subscribed = own.subscribe('channel', jest.fn()).catch((error: Error) => error.message);
  end(own, redis);
  await connected;
  if (redis.status === 'end') expect(await subscribed).toMatch('closed for good');
  else expect([redis.disconnect, redis.stream.destroy].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  expect(own.isOpen).toBe(false);
});

/** A cluster of these masters, which may change. */
function clusterOf(...masters: ReturnType<typeof instance>[]) {
  const cluster = Object.assign(new EventEmitter(), {
    ...{ status: 'ready', masters, nodes: () => cluster.masters, slots: [] as string[][] },
    eval: jest.fn(async (_script: string, _keys: number, _name: string) => 1),
    refreshSlotsCache: jest.fn((done: () => void) => done()),
  });
  return { cluster, client: new ClusterClient(cluster as never) };
}

it('A cluster of ioredis hears once of each node that lost its connection, also if the node tries to connect again', () => {
  const [a, b] = [instance('h', 1), instance('h', 2)];
  const { cluster, client } = clusterOf(a);
  const heard = jest.fn();
  client.on('node-lost', heard);
  cluster.masters.push(b);
  cluster.emit('+node', b);
  for (const node of [a, a, b, b]) node.emit('close');
  expect(heard).toHaveBeenCalledTimes(2);
  // Each of them connects, and is lost again.
  for (const event of ['ready', 'close', 'close']) for (const node of [a, b]) node.emit(event);
  client.off('node-lost', heard);
  expect([heard.mock.calls.length, ...[a, b, cluster].flatMap((one) => one.eventNames())]).toEqual([4]);
});

it('An error of a node of a cluster of ioredis is of the past when a node has connected', () => {
  const node = instance();
  const { cluster, client } = clusterOf(node);
  const monitor = ConnectionMonitor.of(client);
  const stop = monitor.onReconnect(() => undefined);
  cluster.emit('node error', new Error('connect ECONNREFUSED'));
  expect(monitor.lastError).toBeDefined();
  node.emit('ready');
  expect(monitor.lastError).toBeUndefined();
  stop();
});

it('A node that a cluster of ioredis has forgotten is looked for once more', async () => {
  const [a, b] = [instance('h', 1), instance('h', 2)];
  const { cluster, client } = clusterOf(a);
  const known = await client.nodeClient({ host: 'h', port: 1 });
  expect(cluster.refreshSlotsCache).not.toHaveBeenCalled();
  cluster.masters = [b];
  await expect(client.nodeClient({ host: 'h', port: 1 })).rejects.toThrow('h:1 is no master of the cluster any more');
  cluster.refreshSlotsCache.mockImplementationOnce((done) => {
    cluster.masters = [a, b];
    done();
  });
  expect(await client.nodeClient({ host: 'h', port: 1 })).toBe(known);
});

it('A cluster of ioredis has failed over when it has other masters than before', () => {
  const [a, b, c] = [instance('::1', 1), instance('h', 2), instance('h', 3)];
  const { cluster, client } = clusterOf(a, b);
  const heard = jest.fn();
  client.on('node-ready', heard);
  const counts = [
    [a, b],
    [b, a],
    [c, b],
    [b, c],
  ].map((masters) => {
    cluster.masters = masters;
    cluster.emit('refresh');
    return heard.mock.calls.length;
  });
  expect(counts).toEqual([0, 0, 1, 1]);
  cluster.slots = [['::1:1', 'h:2']];
  expect(client.masterOf(0)).toEqual({ host: '::1', port: 1 });
});

it('A cluster of ioredis that was connected before anybody listened has failed over when it has other masters than then', () => {
  const [a, b, c] = [instance('h', 1), instance('h', 2), instance('h', 3)];
  const { cluster, client } = clusterOf(a, b);
  const heard = jest.fn();
  client.on('node-ready', heard);
  cluster.masters = [c, b];
  cluster.emit('refresh');
  expect(heard).toHaveBeenCalledTimes(1);
  client.off('node-ready', heard);
  cluster.masters = [a, b];
  client.on('node-ready', heard);
  cluster.emit('refresh');
  expect(heard).toHaveBeenCalledTimes(1);
});

it('Plain channels of a cluster of ioredis share a connection to a master, and leave one that is none any more', async () => {
  const [a, b, c] = [instance('h', 1), instance('h', 2), instance('h', 3)];
  const { cluster, client } = clusterOf(a, b);
  const restored = jest.fn();
  client.on('ready', restored);
  const connections = async () => {
    await time.advance(1_000);
    for (const own of [a, b, c].flatMap(({ copies }) => copies)) if (own.status === 'connecting') own.becomes('ready');
    await time.advance(0);
    return [a, b, c].map(({ copies }) => copies.length);
  };
  const subscribed = [client.subscribe('one', jest.fn())];
  expect(await connections()).toEqual([1, 0, 0]);
  expect(a.duplicate.mock.calls[0]?.[0]).toMatchObject({ retryStrategy: null, readOnly: false });
  cluster.masters = [b, a];
  subscribed.push(client.subscribe('other', jest.fn()));
  cluster.emit('refresh');
  expect(await connections()).toEqual([1, 0, 0]);
  await Promise.all(subscribed);
  cluster.masters = [b, c];
  cluster.emit('refresh');
  expect(await connections()).toEqual([1, 1, 0]);
  expect([a.copies[0]?.disconnect.mock.calls.length, restored.mock.calls.length]).toEqual([1, 1]);
  // An error of a connection that goes on is not its end.
  const [own] = b.copies as [Copy];
  own.emit('error', new Error('odd reply'));
  expect(await connections()).toEqual([1, 1, 0]);
  own.becomes('end');
  expect(await connections()).toEqual([1, 2, 0]);
});

it('A channel of a cluster of ioredis that has no connection leaves nothing in ioredis until it has one', async () => {
  const { cluster, client } = clusterOf();
  cluster.status = 'reconnecting';
  void client.sSubscribe('channel', jest.fn()).catch(() => undefined);
  await time.advance(60_000);
  expect(cluster.eval).not.toHaveBeenCalled();
  cluster.status = 'ready';
  await time.advance(1_000);
  expect(cluster.eval).toHaveBeenCalledTimes(1);
  await client.sUnsubscribe('channel');
});

it('A channel of a cluster of ioredis leaves nothing in a node that is away, which connects again by itself', async () => {
  const master = instance();
  const { cluster, client } = clusterOf(master);
  cluster.slots = new Array(16_384).fill(['h:1']);
  master.status = 'reconnecting';
  void client.sSubscribe('channel', jest.fn()).catch(() => undefined);
  const advance = async (ms: number) => {
    for (const endsAt = time.now + ms; time.now < endsAt; await time.advance(100)) {
      for (const own of master.copies) if (own.status === 'connecting') own.becomes('end');
    }
    return cluster.eval.mock.calls.length;
  };
  expect(await advance(60_000)).toBe(0);
  master.status = 'ready';
  expect(await advance(1_100)).toBeGreaterThan(0);
  await client.sUnsubscribe('channel');
});

it('A channel of a cluster of ioredis whose slot has moved is tried again, when the client knows where it is', async () => {
  const master = instance();
  const { cluster, client } = clusterOf(master);
  cluster.slots = new Array(16_384).fill(['h:1']);
  const subscribed = client.sSubscribe('channel', jest.fn());
  await time.advance(0);
  const [own] = master.copies as [Copy];
  own.ssubscribe.mockRejectedValueOnce(new Error('MOVED 1 h:2'));
  own.becomes('ready');
  await time.advance(1_000);
  expect(cluster.eval.mock.calls).toEqual([['return 1', 1, 'channel']]);
  for (const one of master.copies) if (one.status === 'connecting') one.becomes('ready');
  await subscribed;
});
