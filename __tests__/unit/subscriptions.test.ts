import { channel as diagnostics } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import type { LockWarning, RedisClient } from '../../lib';
import { clock } from '../../lib/internal/clock';
import { ConnectionMonitor } from '../../lib/redis/connection';
import { isSubscriber, Subscriber } from '../../lib/redis/subscriber';
import type { Subscription } from '../../lib/redis/subscription';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, silence } from '../support/mock-redis';

const time = FakeClock.install();

type Listener = (message: string) => void;
type Command = (name: string, listener: Listener) => Promise<unknown>;

const CUT = new Error('Socket closed unexpectedly');
const REFUSED = new Error('NOPERM no rights for this channel');
/** As some clients say it, without the code of the server. */
const UNKNOWN = new Error("Unknown command 'SSUBSCRIBE'");
const failing = (error: Error) => jest.fn<Command>().mockRejectedValue(error);

/** A connection that listens, and what it got. */
function connection(parts: object = {}) {
  const told: string[] = [];
  const listeners = new Map<string, Listener>();
  const own = Object.assign(new EventEmitter(), {
    told,
    listeners,
    isOpen: true,
    isReady: true,
    connect: async (): Promise<unknown> => undefined,
    destroy: () => void told.push('destroy'),
    subscribe: async (name: string, listener: Listener) => {
      told.push(`+${name}`);
      listeners.set(name, listener);
    },
    unsubscribe: async (name: string) => {
      told.push(`-${name}`);
      listeners.delete(name);
    },
    ...parts,
  });
  return own;
}

type Connection = ReturnType<typeof connection>;

/** A subscriber of a plain client, whose connections are `owns` in turn, or of a client that listens itself. */
function opened(owns: readonly Connection[], options: object = {}, client: object = {}) {
  const warnings: LockWarning[] = [];
  let next = 0;
  const duplicate = jest.fn((_: object) => owns[next++] as Connection);
  // What a client inherits stays: it may emit events.
  const plain = Object.assign(client, { ...mockRedis(), socketEpoch: 1, isOpen: true, duplicate, ...client });
  const onWarning = (warning: LockWarning) => warnings.push(warning);
  const published: string[] = [];
  const publish = async (_: boolean, channel: string, message: string) => published.push(`${channel} ${message}`);
  const defaults = {
    ...{ connection: undefined, isSharded: false, timeout: 5_000, isCountable: true, id: 'us' },
    ...{ publish, onWarning },
  };
  const subscriber = new Subscriber(plain as RedisClient, { ...defaults, ...options });
  const woken: string[] = [];
  /** A subscription that somebody listens to. */
  const listen = async (name: string, onMessage: Listener = () => undefined) => {
    const subscription = subscriber.subscribe([name], onMessage) as Subscription;
    subscription.join();
    subscription.onWake(() => woken.push(name));
    await time.advance(0);
    return subscription;
  };
  const reasons = () => warnings.map(({ message }) => message.replace('Waiting for locks falls back to polling: ', ''));
  return { subscriber, plain, duplicate, warnings, reasons, woken, listen };
}

/** A subscriber whose client listens itself, as that of a cluster. */
const listeningItself = (client: object) => opened([], {}, Object.assign(client, { socketEpoch: undefined }));

it('A subscription gets each message as text, and wakes its listeners until they leave', async () => {
  const own = connection();
  const { listen, woken } = opened([own]);
  const messages: unknown[] = [];
  const subscription = await listen('x', (message) => messages.push(message));
  expect([subscription.isOpen, woken]).toEqual([true, ['x']]);
  own.listeners.get('x')?.(Buffer.from('released') as never);
  expect(messages).toEqual(['released']);
  const waker = jest.fn();
  const stop = subscription.onWake(waker);
  subscription.wake();
  stop();
  subscription.wake();
  expect(waker).toHaveBeenCalledTimes(1);
});

it('A subscription ends a second after the last listener has left, and keeps no process alive for that', async () => {
  const own = connection();
  const { listen } = opened([own]);
  const subscription = await listen('x');
  subscription.join();
  subscription.leave();
  expect(time.pending).toBe(0);
  subscription.leave();
  expect([time.pending, time.keepingAlive]).toEqual([1, 0]);
  await time.advance(500);
  for (const ms of [0, 5_000]) {
    subscription.join();
    await time.advance(ms);
    subscription.leave();
    await time.advance(999);
    expect(subscription.isOver).toBe(false);
  }
  await time.advance(1);
  expect([subscription.isOver, own.told]).toEqual([true, ['+x', '-x']]);
  subscription.join();
  subscription.leave();
  expect(time.pending).toBe(0);
});

it('A subscription that has ended leaves nothing of its channel: the next one has another listener at the client', async () => {
  const own = connection();
  const { listen } = opened([own]);
  const first = await listen('x');
  const listener = own.listeners.get('x');
  const second = await listen('x');
  first.leave();
  await time.advance(1_000);
  // Another one needs the channel.
  expect([own.listeners.get('x') === listener, own.told]).toEqual([true, ['+x']]);
  second.leave();
  await time.advance(1_000);
  await listen('x');
  expect(own.told).toEqual(['+x', '-x', '+x']);
  expect(own.listeners.get('x')).not.toBe(listener);
});

it('A subscription that Redis does not confirm is not open, and is warned of once, after the timeout', async () => {
  const { listen, warnings } = opened([connection({ subscribe: silence })]);
  expect((await listen('x')).isOpen).toBe(false);
  await listen('y');
  expect(time.keepingAlive).toBe(0);
  await time.advance(4_999);
  expect(warnings).toEqual([]);
  await time.advance(1);
  const cause = new Error('no answer to SUBSCRIBE');
  const message = `Waiting for locks falls back to polling: ${cause.message}`;
  expect(warnings).toMatchObject([{ code: 'SUBSCRIBER_UNAVAILABLE', message, cause }]);
});

it('A subscription that ended before Redis has answered is not warned of', async () => {
  const { listen, subscriber, reasons } = opened([connection({ subscribe: silence }), connection()]);
  const subscription = await listen('x');
  subscriber.renew();
  await time.advance(10_000);
  expect([subscription.isOver, reasons()]).toEqual([true, []]);
});

it('A subscription works where timers are numbers, as in the fake timers of an application', async () => {
  const set = clock.setTimeout;
  clock.setTimeout = (callback, ms) => set(callback, ms) && (1 as unknown as NodeJS.Timeout);
  const ping = jest.fn(async () => undefined).mockRejectedValueOnce(new Error('no'));
  const { listen } = opened([connection({ ping })], {}, { options: { socket: { socketTimeout: 3_000 } } });
  expect((await listen('x')).isOpen).toBe(true);
  await time.advance(2_000);
  expect(ping).toHaveBeenCalledTimes(2);
});

it('A command about a channel that fails leaves it to those that wait for it, and one that cannot end it too', async () => {
  const given = connection({ unsubscribe: failing(CUT) });
  given.subscribe = jest.fn(given.subscribe).mockRejectedValueOnce(REFUSED);
  const { listen, subscriber } = opened([], { connection: given });
  subscriber.subscribe(['x'], () => undefined);
  const second = await listen('x');
  await time.advance(10_000);
  expect([second.isOpen, (await listen('x')).isOpen, given.told]).toEqual([true, true, ['+x']]);
  second.leave();
  await time.advance(1_000);
  expect([second.isOver, (await listen('x')).isOpen, given.told]).toEqual([true, true, ['+x']]);
});

it('A command about a channel that could not end it leaves nothing: the next one subscribes it anew', async () => {
  const given = connection({ unsubscribe: failing(CUT) });
  const { listen } = opened([], { connection: given });
  (await listen('x')).leave();
  await time.advance(1_000);
  await listen('x');
  expect(given.told).toEqual(['+x', '+x']);
});

it('A command about a channel that fails after its connection takes nothing from the channel of the next one', async () => {
  const { promise, reject } = lateReply();
  const next = connection();
  const { listen, subscriber } = opened([connection({ subscribe: () => promise }), next]);
  await listen('x');
  subscriber.renew();
  await listen('x');
  reject(CUT);
  await time.advance(0);
  await listen('x');
  expect(next.told.filter((command) => command === '+x')).toHaveLength(1);
});

it('A command about a channel that is answered after the subscriber was closed makes no connection, and leaves no channel', async () => {
  const { promise, resolve } = lateReply();
  const client = connection({ subscribe: () => promise });
  const { listen, subscriber, reasons } = listeningItself(client);
  await listen('x');
  void subscriber.close();
  await time.advance(1_000);
  resolve(undefined);
  await time.advance(10_000);
  expect([client.eventNames(), reasons(), client.told]).toEqual([[], [], ['-x']]);
});

it('A command about a channel that failed with its connection is sent once more', async () => {
  const given = connection();
  given.subscribe = jest.fn(given.subscribe).mockRejectedValueOnce(CUT);
  const { listen, reasons } = opened([], { connection: given });
  expect((await listen('x')).isOpen).toBe(true);
  expect([given.told, reasons()]).toEqual([['+x'], []]);
});

it.each([
  ['no rights', REFUSED],
  ['no such command', UNKNOWN],
])('A command about a channel is not repeated after an answer of the server: %s', async (_, error) => {
  const subscribe = failing(error);
  const { listen, reasons, woken } = opened([], { connection: connection({ subscribe }) });
  expect((await listen('x')).isOver).toBe(true);
  expect([subscribe.mock.calls.length, reasons(), woken]).toEqual([1, [error.message], ['x']]);
});

it('A command about a channel that nobody needs any more is repeated twice at each reconnect, until it succeeds', async () => {
  const unsubscribe = failing(CUT);
  const own = connection({ unsubscribe });
  const { listen } = opened([own]);
  (await listen('x')).leave();
  await time.advance(1_000);
  for (const calls of [2, 4, 5, 5]) {
    expect(unsubscribe).toHaveBeenCalledTimes(calls);
    if (calls === 4) unsubscribe.mockResolvedValue(undefined);
    own.emit('ready');
    await time.advance(0);
  }
});

it('A command about a channel that could not end it is repeated when the client was closed, and is connected again', async () => {
  const unsubscribe = failing(CUT);
  const client = connection({ unsubscribe });
  const { listen } = listeningItself(client);
  (await listen('x')).leave();
  await time.advance(1_000);
  unsubscribe.mockResolvedValue(undefined);
  client.emit('end');
  client.emit('ready');
  await time.advance(0);
  expect(unsubscribe).toHaveBeenCalledTimes(2 + 1);
});

it('A command about a channel that could not end it is repeated once, also when the subscriber is closed', async () => {
  for (const isClosed of [false, true]) {
    const { promise, reject } = lateReply();
    const given = connection();
    const { unsubscribe } = given;
    given.unsubscribe = jest.fn(unsubscribe).mockReturnValueOnce(promise as Promise<void>);
    const { listen, subscriber } = opened([], { connection: given });
    (await listen('x')).leave();
    await time.advance(1_000);
    if (isClosed) void subscriber.close();
    await time.advance(1_000);
    reject(CUT);
    await time.advance(0);
    expect(given.told).toEqual(['+x', '-x']);
  }
});

it('A command about a channel that could not end it is repeated after a refusal, too: the client knows the channel still', async () => {
  const given = connection();
  given.unsubscribe = jest.fn(given.unsubscribe).mockRejectedValueOnce(CUT).mockRejectedValueOnce(CUT);
  const { listen } = opened([], { connection: given });
  (await listen('x')).leave();
  await time.advance(1_000);
  given.subscribe = jest.fn(given.subscribe).mockRejectedValueOnce(REFUSED);
  expect((await listen('x')).isOver).toBe(true);
  expect(given.told).toEqual(['+x', '-x']);
});

it('A command about a sharded channel needs a client with both, and says so', async () => {
  for (const parts of [{}, { sSubscribe: silence }, { sUnsubscribe: silence }]) {
    const { listen, reasons } = opened([], { connection: connection(parts), isSharded: true });
    expect([(await listen('x')).isOver, reasons()]).toEqual([true, ['the client has no sharded pub/sub']]);
  }
});

it('A command about a sharded channel is one about a plain channel where the server is too old, from then on', async () => {
  const sSubscribe = failing(UNKNOWN);
  const given = connection({ sSubscribe, sUnsubscribe: silence });
  const { listen } = opened([], { connection: given, isSharded: true, orPlain: true });
  expect([(await listen('x')).isOpen, (await listen('y')).isOpen, given.told]).toEqual([true, true, ['+x', '+y']]);
  expect(sSubscribe).toHaveBeenCalledTimes(1);
});

it.each([
  ['it may not be one', UNKNOWN, false],
  ['the server has refused it', REFUSED, true],
])('A command about a sharded channel is not one about a plain channel where %s', async (_, error, orPlain) => {
  const given = connection({ sSubscribe: failing(error), sUnsubscribe: silence });
  const { listen, reasons } = opened([], { connection: given, isSharded: true, orPlain });
  expect([(await listen('x')).isOpen, given.told, reasons()]).toEqual([false, [], [error.message]]);
});

it('A command about a sharded channel goes to the client as such', async () => {
  const told: string[] = [];
  const sSubscribe = async (name: string) => void told.push(`+${name}`);
  const sUnsubscribe = async (name: string) => void told.push(`-${name}`);
  const { listen } = opened([], { connection: connection({ sSubscribe, sUnsubscribe }), isSharded: true });
  (await listen('x')).leave();
  await time.advance(1_000);
  expect(told).toEqual(['+x', '-x']);
});

it('Messages come over the connection that was given, also for a client without messages, or one that could be duplicated', async () => {
  for (const parts of [{}, { pollInterval: 100, socketEpoch: undefined }]) {
    const given = connection();
    const { listen, duplicate } = opened([], { connection: given }, parts);
    await listen('x');
    expect([given.told, duplicate.mock.calls]).toEqual([['+x'], []]);
  }
  const { subscriber } = opened([connection()], {}, { pollInterval: 100 });
  expect(subscriber.subscribe(['x'], () => undefined)).toBeUndefined();
});

it('A connection is counted while it is there, and one that was given while no other registry listens over it', async () => {
  const given = connection();
  const [one, other] = [opened([], { connection: given }), opened([], { connection: given })];
  const own = Object.assign(connection(), { isReady: true });
  const alone = opened([own]);
  await Promise.all([one.listen('x'), alone.listen('x')]);
  const areCounted = () => [one, other, alone].map(({ subscriber }) => subscriber.isCounted);
  expect(areCounted()).toEqual([true, false, true]);
  await other.listen('x');
  expect(areCounted()).toEqual([false, false, true]);
  await other.subscriber.close();
  expect(areCounted()).toEqual([true, false, true]);
  // It connects again: the server has lost it.
  own.isReady = false;
  expect(areCounted()).toEqual([true, false, false]);
  Object.assign(given, { isListening: false });
  expect(areCounted()).toEqual([false, false, false]);
});

it('Messages may come over a connection that was given or could be made, or a client that listens, if it gets any', () => {
  const ways = [
    opened([], { connection: connection() }, { pollInterval: 100, socketEpoch: undefined }),
    opened([]),
    listeningItself(connection()),
    listeningItself({}),
    opened([], {}, { pollInterval: 100 }),
  ];
  expect(ways.map(({ subscriber }) => subscriber.mayListen)).toEqual([true, true, true, false, false]);
});

it('Messages come over a client that can listen itself; after a reconnect waiters look, and after it was closed subscribe anew', async () => {
  const client = connection();
  const { listen, woken } = listeningItself(client);
  const subscription = await listen('x');
  client.emit('ready');
  expect([woken, subscription.isOpen, client.told]).toEqual([['x', 'x'], true, ['+x']]);
  client.emit('end');
  client.emit('ready');
  await time.advance(0);
  expect([woken.length, subscription.isOver, client.told]).toEqual([3, true, ['+x', '-x']]);
  const again = await listen('x');
  client.emit('ready');
  expect(again.isOpen).toBe(true);
});

it('Messages come over a client that was closed and connected again, also to a waiter that subscribes as it is woken', async () => {
  const client = connection();
  const { listen, subscriber } = listeningItself(client);
  const subscription = await listen('x');
  subscription.onWake(() => subscription.isOver && subscriber.subscribe(['x'], () => undefined));
  client.emit('end');
  client.emit('ready');
  await time.advance(0);
  expect(client.told).toEqual(['+x', '-x', '+x']);
});

it('Messages come from a client with the methods subscribe and unsubscribe only, and a warning says so', async () => {
  expect(
    [connection(), { subscribe: silence }, { unsubscribe: silence }, {}, undefined, null].map(isSubscriber),
  ).toEqual([...[true, false, false, false, false, false]]);
  const { listen, reasons } = listeningItself({});
  await listen('x');
  expect(reasons()).toEqual([
    'the client has no pub/sub connection (a pool has none): pass one as the option `subscriber`',
  ]);
  const plain = opened([], {}, { duplicate: undefined });
  await plain.listen('x');
  expect(plain.reasons()).toEqual(['the client has no `duplicate()`']);
});

it('A connection of our own is made without hand-offs, and ends with one of the client', async () => {
  const owns = [connection(), connection()];
  const { listen, duplicate, woken } = opened(owns);
  const subscription = await listen('x');
  expect(duplicate.mock.calls).toEqual([[{ maintNotifications: 'disabled' }]]);
  diagnostics('node-redis:connection:handoff').publish({});
  await time.advance(0);
  expect([subscription.isOver, owns[0]?.told, woken]).toEqual([true, ['+x', 'destroy'], ['x', 'x']]);
  await listen('x');
  expect(owns[1]?.told).toEqual(['+x']);
});

it('A connection of our own ends once, also when a waiter has it renewed as it hears of the end', async () => {
  const { listen, subscriber } = opened([connection(), connection()]);
  const subscriptions = [await listen('x'), await listen('y')];
  for (const one of subscriptions) one.onWake(() => subscriber.renew());
  diagnostics('node-redis:connection:handoff').publish({});
  await time.advance(0);
  expect(subscriptions.map(({ isOver }) => isOver)).toEqual([true, true]);
});

it('A connection of our own that was made again has waiters look, and after an error that it survives nothing happens', async () => {
  const own = connection();
  const { listen, woken } = opened([own]);
  await listen('x');
  await listen('y');
  own.emit('error', CUT);
  expect(woken).toEqual(['x', 'y']);
  own.emit('reconnecting');
  own.emit('ready');
  expect([woken.join(' '), own.told.join(' ')]).toEqual(['x y x y', '+x +y']);
});

it('A connection of our own that is closed for good is made anew, once in 5 s; then waiters poll, and a warning says so', async () => {
  const owns = [connection(), connection()];
  const { listen, reasons, subscriber, woken } = opened(owns);
  for (const [i, own] of owns.entries()) {
    const subscription = await listen('x');
    own.isOpen = false;
    own.emit('error', CUT);
    await time.advance(0);
    expect([subscription.isOver, own.told, woken.length]).toEqual([true, ['+x', 'destroy'], 2 + 2 * i]);
    // It is no longer the connection.
    own.emit('error', CUT);
    expect(reasons()).toEqual(['the pub/sub connection is closed for good'].slice(0, i));
  }
  const isTried = () => subscriber.subscribe(['x'], () => undefined) !== undefined;
  await time.advance(9_900);
  expect(isTried()).toBe(false);
  await time.advance(100);
  expect(isTried()).toBe(true);
});

it('A connection that seems dead is renewed once in 5 s', async () => {
  const { subscriber } = opened([], { connection: connection() });
  expect([subscriber.renew(), subscriber.renew()]).toEqual([true, false]);
  await time.advance(4_999);
  expect(subscriber.renew()).toBe(false);
  await time.advance(1);
  expect(subscriber.renew()).toBe(true);
});

it('A connection of our own is not made again for a client that was closed, which is no fault', async () => {
  const owns = [connection(), connection()];
  const { listen, reasons, plain, subscriber } = opened(owns);
  const subscription = await listen('x');
  plain.isOpen = false;
  owns[0]?.emit('reconnecting');
  await time.advance(0);
  expect(subscriber.subscribe(['x'], () => undefined)).toBeUndefined();
  expect([subscription.isOver, owns[0]?.told.includes('destroy'), reasons()]).toEqual([true, true, []]);
  plain.isOpen = true;
  expect((await listen('x')).isOpen).toBe(true);
  // Of those that are lost while the client is open, this is the first in 5 s.
  const [, second] = owns;
  if (second !== undefined) second.isOpen = false;
  second?.emit('error', CUT);
  expect(reasons()).toEqual([]);
});

it('A connection of our own ends with the client, and the next waiter has another one when that is open again', async () => {
  const owns = [connection(), connection()];
  const client = new EventEmitter();
  const { listen, woken } = opened(owns, {}, client);
  ConnectionMonitor.of(client).onReconnect(() => undefined);
  await listen('x');
  client.emit('end');
  await time.advance(0);
  expect([owns[0]?.told, woken]).toEqual([
    ['+x', 'destroy'],
    ['x', 'x'],
  ]);
  await listen('x');
  expect(owns[1]?.told).toEqual(['+x']);
});

it('A connection of our own that another one has followed is destroyed when it connects, or tries to', async () => {
  const { promise, resolve } = lateReply();
  const late = connection({ connect: () => promise, isReady: false });
  const next = connection();
  const { listen, subscriber, reasons, woken } = opened([late, next]);
  await listen('x');
  subscriber.renew();
  expect(late.told).toEqual([]);
  await listen('x');
  const before = woken.length;
  late.emit('ready');
  late.emit('reconnecting');
  resolve(undefined);
  await time.advance(0);
  expect([late.told, woken.length, reasons()]).toEqual([['destroy', 'destroy'], before, []]);
  expect(next.told).toEqual(['+x']);
});

it('A connection of our own that was closed while it connected is not listened to', async () => {
  const { listen, reasons } = opened([connection({ isOpen: false })]);
  expect((await listen('x')).isOver).toBe(true);
  expect(reasons()).toEqual(['it was closed while it connected']);
});

it('A connection of our own is pinged only while it is the connection, with a socketTimeout, and if it can be', async () => {
  const [first, second] = [connection({ ping: jest.fn(async () => undefined) }), connection()];
  const { listen, subscriber } = opened([first, second], {}, { options: { socket: { socketTimeout: 3_000 } } });
  await listen('x');
  await time.advance(1_000);
  expect(time.keepingAlive).toBe(0);
  subscriber.renew();
  await listen('x');
  await time.advance(5_000);
  expect([(first as unknown as { ping: jest.Mock }).ping.mock.calls.length, time.pending]).toEqual([1, 0]);
  const without = opened([connection({ ping: silence })]);
  await without.listen('x');
  expect(time.pending).toBe(0);
});

it('A connection of our own stays when a channel is refused while another one is subscribed, and else it is closed', async () => {
  const own = connection();
  const { listen } = opened([own]);
  await listen('x');
  own.subscribe = failing(REFUSED) as never;
  expect((await listen('y')).isOver).toBe(true);
  expect([own.told, own.listeners.has('x')]).toEqual([['+x'], true]);
  const alone = connection({ subscribe: failing(REFUSED) });
  await opened([alone]).listen('y');
  expect(alone.told).toEqual(['destroy']);
});

it('A connection that was given is listened to still when a channel is refused before another one is confirmed', async () => {
  const subscribed = lateReply();
  const client = connection({
    subscribe: (name: string) => (name === 'x' ? subscribed.promise : Promise.reject(REFUSED)),
  });
  const { listen, woken } = listeningItself(client);
  const subscription = await listen('x');
  await listen('y');
  subscribed.resolve(undefined);
  await time.advance(0);
  client.emit('ready');
  expect([subscription.isOpen, woken]).toEqual([true, ['y', 'x', 'x']]);
});

it('A subscriber that is closed listens to nothing any more, wakes nobody, and warns of nothing', async () => {
  const own = connection();
  const { listen, subscriber, duplicate, woken, reasons } = opened([own, connection()]);
  const subscription = await listen('x');
  await subscriber.close();
  // Its own connection takes its channels with it.
  expect([subscription.isOver, own.told, woken]).toEqual([true, ['+x', 'destroy'], ['x']]);
  expect([subscriber.renew(), subscriber.subscribe(['x'], () => undefined)]).toEqual([false, undefined]);
  own.isOpen = false;
  own.emit('error', CUT);
  await time.advance(10_000);
  expect([reasons(), duplicate.mock.calls.length]).toEqual([[], 1]);
});

it('A subscriber that is closed leaves no channel at the connection that was given, and does not listen to its events', async () => {
  const client = connection();
  const { listen, subscriber } = listeningItself(client);
  await listen('x');
  await listen('y');
  await subscriber.close();
  expect([client.told, client.eventNames()]).toEqual([['+x', '+y', '-x', '-y'], []]);
});

it('A subscriber that is closed as it warns wakes those that have listened', async () => {
  const own = connection({ subscribe: failing(REFUSED) });
  const { listen, subscriber, woken } = opened([own], { onWarning: () => void subscriber.close() });
  await listen('x');
  expect(woken).toEqual(['x']);
});

it('A subscriber that is closed waits for a second for the connection of an application to be unsubscribed', async () => {
  const { listen, subscriber } = opened([], { connection: connection({ unsubscribe: silence }) });
  await listen('x');
  expect(await time.settled(subscriber.close())).toMatchObject({ after: 1_000 });
});

it('A subscriber that is closed before its first command is sent makes no connection', async () => {
  const { subscriber, duplicate, reasons } = opened([connection()]);
  subscriber.subscribe(['x'], () => undefined);
  await subscriber.close();
  await time.advance(10_000);
  expect([duplicate.mock.calls.length, reasons()]).toEqual([0, []]);
});

/** Waits until a proof has been published, and answered. */
async function proved(subscriber: Subscriber, channel = 'x'): Promise<void> {
  const proof = subscriber.proofOf(channel, 'lock');
  proof.join();
  await time.advance(300);
  proof.leave();
}

it('A registry publishes to itself on one channel for all plain ones, and on one for each sharded one', async () => {
  const answered = async () => undefined;
  for (const isSharded of [false, true]) {
    const published: unknown[][] = [];
    const publish = async (...sent: unknown[]) => published.push(sent);
    const { subscriber } = opened([connection({ sSubscribe: answered, sUnsubscribe: answered })], {
      isSharded,
      publish,
    });
    expect(subscriber.proofOf('x', 'lock') === subscriber.proofOf('y', 'lock')).toBe(!isSharded);
    await proved(subscriber);
    expect(published).toEqual([[isSharded, 'x:@us', '1', 'lock']]);
    await subscriber.close();
  }
});

it('A connection for messages over which none arrives is made anew at most every five seconds, with one warning', async () => {
  const owns = [connection(), connection(), connection()];
  const { subscriber, listen, duplicate, reasons } = opened(owns, { publish: async () => 1 });
  await listen('x');
  const proof = subscriber.proofOf('x', 'lock');
  proof.join();
  await time.advance(1_255);
  expect([duplicate.mock.calls.length, owns[0]?.told.at(-1), proof.isDeaf]).toEqual([2, 'destroy', true]);
  await time.advance(4_900);
  expect(duplicate).toHaveBeenCalledTimes(2);
  await time.advance(5_000);
  expect(duplicate).toHaveBeenCalledTimes(3);
  proof.leave();
  await subscriber.close();
  expect([reasons(), time.pending]).toEqual([['a message of this registry to itself does not arrive'], 0]);
});

it('A connection that has confirmed channels, and confirms no further one, is made anew though all of them are gone', async () => {
  const owns = [connection(), connection()];
  const { subscriber, listen, duplicate, reasons } = opened(owns, { publish: async () => 1 });
  const first = await listen('x');
  first.leave();
  await time.advance(1_000);
  expect([first.isOver, duplicate.mock.calls.length]).toEqual([true, 1]);
  Object.assign(owns[0] as Connection, { subscribe: silence });
  await listen('y');
  const proof = subscriber.proofOf('y', 'lock');
  proof.join();
  await time.advance(250 + 1_000 + 1_005);
  expect([duplicate.mock.calls.length, proof.isDeaf]).toEqual([2, true]);
  proof.leave();
  await subscriber.close();
  expect(reasons()).toEqual(['a message of this registry to itself does not arrive']);
});

it('A connection of our own whose messages arrive, and which the server of the commands does not count, is made anew less and less often', async () => {
  const owns = Array.from({ length: 5 }, () => connection());
  const last = () => owns.findLast(({ listeners }) => listeners.has('x:@us'));
  const publish = async (_: boolean, channel: string, message: string) => {
    queueMicrotask(() => last()?.listeners.get(channel)?.(message));
    return 0;
  };
  const { subscriber, listen, duplicate, reasons } = opened(owns, { publish });
  await listen('x');
  expect(subscriber.isCounted).toBe(true);
  const proof = subscriber.proofOf('x', 'lock');
  proof.join();
  const made: number[] = [];
  for (const ms of [300, 5_000, 4_000, 8_000, 6_000]) {
    await time.advance(ms);
    made.push(duplicate.mock.calls.length);
  }
  expect([made, subscriber.isCounted, proof.isDeaf, reasons()]).toEqual([[1, 2, 3, 3, 4], false, false, []]);
  proof.leave();
});

it('Where PUBLISH in a script counts no listener, a message that arrives is enough', async () => {
  const own = connection();
  const publish = async (_: boolean, channel: string, message: string) => {
    queueMicrotask(() => own.listeners.get(channel)?.(message));
    return 0;
  };
  const { subscriber, listen, duplicate } = opened([own], { publish, isCountable: false });
  await listen('x');
  await proved(subscriber);
  expect([duplicate.mock.calls.length, subscriber.isCounted]).toEqual([1, true]);
});

it('A client with connections of its own for messages makes these anew', async () => {
  const renewConnections = jest.fn();
  const client = Object.assign(connection(), { renewConnections });
  const { subscriber, listen } = listeningItself(client);
  const subscription = await listen('x');
  expect([subscriber.renew(), subscriber.renew(), renewConnections.mock.calls.length]).toEqual([true, false, 1]);
  expect(subscription.isOver).toBe(false);
});
