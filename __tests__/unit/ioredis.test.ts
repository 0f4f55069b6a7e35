import { EventEmitter } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import { OwnConnection, SingleClient, type SingleIoredis } from '../../lib/ioredis/client';
import { ClusterClient } from '../../lib/ioredis/cluster';
import { lateReply } from '../support/mock-redis';

it('A command that ioredis has queued is not rejected by the failure of a reconnect', async () => {
  const reply = lateReply();
  const redis = Object.assign(new EventEmitter(), {
    options: { autoResendUnfulfilledCommands: false },
    status: 'ready',
    call: () => reply.promise,
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
});

it('A cluster of ioredis is listened to once, and by nothing when nobody listens and no channel is subscribed', async () => {
  const cluster = Object.assign(new EventEmitter(), { status: 'ready', slots: [], nodes: () => [] });
  const client = new ClusterClient(cluster as never);
  const heard = jest.fn();
  for (const event of ['ready', 'end']) client.on(event, heard);
  expect(cluster.eventNames().map((event) => cluster.listenerCount(event))).toEqual([1, 1, 1, 1]);
  cluster.emit('ready');
  for (const event of ['ready', 'end']) client.off(event, heard);
  expect([heard.mock.calls.length, cluster.eventNames()]).toEqual([1, []]);
  const refused = expect(client.subscribe('channel', heard)).rejects.toBeUndefined();
  expect(cluster.eventNames()).toEqual(['refresh', 'end']);
  await client.unsubscribe('channel');
  await refused;
  expect(cluster.eventNames()).toEqual([]);
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
  redis.status = 'end';
  redis.emit('end');
  await expect(connected).rejects.toThrow('the connection was closed');
  expect([failed.mock.calls.length, own.isOpen]).toEqual([1, false]);
});
