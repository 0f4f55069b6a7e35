import { expect, it, jest } from '@jest/globals';
import type { RedisClient, RedisSubscriber } from '../../lib';
import { Subscriber } from '../../lib/redis/subscriber';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, silence } from '../support/mock-redis';

const time = FakeClock.install();
const ignore = () => undefined;

function open(connection?: Partial<RedisSubscriber>, client: object = mockRedis()): Subscriber {
  const options = { connection: connection as RedisSubscriber, isSharded: false, timeout: 5_000, onWarning: ignore };
  return new Subscriber(client as RedisClient, options);
}

it('A client that cannot listen is asked again after 10 s, and not before', async () => {
  const subscriber = open();
  const isTried = () => subscriber.subscribe(['channel'], ignore) !== undefined;
  expect(isTried()).toBe(true);
  await time.advance(9_900);
  expect(isTried()).toBe(false);
  await time.advance(200);
  expect(isTried()).toBe(true);
});

it('A connection that seems dead is renewed once in 5 s', async () => {
  const subscriber = open({ subscribe: async () => undefined });
  expect([subscriber.renew(), subscriber.renew()]).toEqual([true, false]);
  await time.advance(4_999);
  expect(subscriber.renew()).toBe(false);
  await time.advance(1);
  expect(subscriber.renew()).toBe(true);
});

it('A subscriber waits for a second for the connection of an application to be unsubscribed', async () => {
  const subscriber = open({ subscribe: async () => undefined, unsubscribe: silence });
  subscriber.subscribe(['channel'], ignore);
  await time.advance(1);
  const closed = jest.fn();
  void subscriber.close().then(closed);
  await time.advance(900);
  expect(closed).not.toHaveBeenCalled();
  await time.advance(200);
  expect(closed).toHaveBeenCalled();
});

it('A connection of our own is pinged three times in the socketTimeout of the client', async () => {
  const ping = jest.fn(async () => undefined);
  const own = { ping, on: ignore, connect: ignore, destroy: ignore, subscribe: async () => undefined };
  const options = { socket: { socketTimeout: 30_000 } };
  const subscriber = open(undefined, { ...mockRedis(), options, socketEpoch: 1, duplicate: () => own });
  subscriber.subscribe(['channel'], ignore);
  await time.advance(30_500);
  expect(ping).toHaveBeenCalledTimes(3);
  await subscriber.close();
});
