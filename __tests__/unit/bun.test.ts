import { expect, it, jest } from '@jest/globals';
import { type RedisClient, RedisLockRegistry } from '../../lib';
import { type BunRedis, fromBun } from '../../lib/clients/bun';
import { FakeClock } from '../support/fake-clock';
import { until } from '../support/until';

const answer = (message: string) => Object.assign(new Error(message), { code: 'ERR_REDIS_SERVER_ERROR' });

type Listener = (message: string, channel: string) => unknown;

/** Bun's client under Bun: `npm run test:bun`. Here: what is refused. It has the connections that were made of it. */
class RedisClientOfBun implements BunRedis {
  connected = true;
  readonly made: RedisClientOfBun[] = [];
  readonly listeners = new Map<string, Listener>();
  isClosed = false;
  readonly #error: Error;
  /** What the next SUBSCRIBE of this channel fails with, on any connection. */
  readonly failures: Map<string, Error>;

  /** Each command fails with this error. */
  constructor(error: Error = answer('ERR'), failures = new Map<string, Error>()) {
    this.#error = error;
    this.failures = failures;
  }

  async send(): Promise<unknown> {
    throw this.#error;
  }

  readonly evalsha = this.send;

  async duplicate(): Promise<unknown> {
    const made = new RedisClientOfBun(this.#error, this.failures);
    this.made.push(made);
    return made;
  }

  async subscribe(channel: string, listener: Listener): Promise<void> {
    const failure = this.failures.get(channel);
    this.failures.delete(channel);
    if (failure !== undefined) throw failure;
    this.listeners.set(channel, listener);
  }

  async unsubscribe(): Promise<void> {}

  close(): void {
    this.isClosed = true;
  }
}

it("A client of Bun's is refused as it is, and the error names the adapter", () => {
  const redis = new RedisClientOfBun() as unknown as RedisClient;
  expect(() => new RedisLockRegistry(redis, { registryKey: 'orders' })).toThrow(/fromBun.*redis-lock-registry\/bun/);
});

it('The adapter refuses what is no client of Bun, minReplicas, and sharded channels', async () => {
  const noClient = { send: () => undefined } as never;
  expect(() => fromBun(noClient)).toThrow(
    /^Expected a RedisClient of Bun, got an object without `connected`, `duplicate`/,
  );
  const client = fromBun(new RedisClientOfBun());
  expect(() => new RedisLockRegistry(client, { registryKey: 'orders', minReplicas: 1 })).toThrow(/minReplicas/);
  await expect(client.sSubscribe?.('channel', () => undefined)).rejects.toThrow(/has no sharded pub\/sub/);
});

it('A cluster is refused by its first redirection, at once', async () => {
  const client = fromBun(new RedisClientOfBun(answer('MOVED 8000 127.0.0.1:7001')));
  const registry = new RedisLockRegistry(client, { registryKey: 'orders' });
  const refused = registry.obtain('42').lock();
  await expect(refused).rejects.toMatchObject({
    code: 'ERR_CANNOT_ACQUIRE_LOCK',
    cause: { message: "ERR Bun's RedisClient cannot work with a cluster: MOVED 8000 127.0.0.1:7001" },
  });
  await registry.close({ timeout: 0 });
});

it("A client of Bun's is without a connection when it has lost one, and not before it has made the first", async () => {
  class Lazy extends RedisClientOfBun {
    override connected = false;
    isRefused = true;
    override async send(): Promise<unknown> {
      if (this.isRefused) throw new Error('Connection closed');
      await Promise.resolve();
      this.connected = true;
      return 'PONG';
    }
  }
  const redis = new Lazy();
  const client = fromBun(redis);
  expect(client.isReady).toBe(true);
  await expect(client.eval('return redis.call("PING")')).rejects.toThrow('Connection closed');
  expect(client.isReady).toBe(true);
  redis.isRefused = false;
  const first = client.eval('return redis.call("PING")');
  expect(client.isReady).toBe(true);
  await first;
  expect(client.isReady).toBe(true);
  redis.connected = false;
  expect(client.isReady).toBe(false);
  // A lost connection is no answer of the server.
  const lost = new Error('MOVED away: the connection was closed');
  await expect(fromBun(new RedisClientOfBun(lost)).eval('return 1')).rejects.toBe(lost);
});

const open = async (failure: Error) => {
  const redis = new RedisClientOfBun();
  const client = fromBun(redis);
  const received: string[] = [];
  await client.subscribe('one', (message) => received.push(message));
  redis.failures.set('two', failure);
  await expect(client.subscribe('two', () => undefined)).rejects.toBe(failure);
  return { redis, client, received };
};

it('A SUBSCRIBE that fails takes no other channel with it when the server refuses it: the connection stays', async () => {
  const { redis, client, received } = await open(answer('NOPERM this user has no permissions to access the channel'));
  expect(redis.made.map(({ isClosed }) => isClosed)).toEqual([false]);
  redis.made[0]?.listeners.get('one')?.('released', 'one');
  expect(received).toEqual(['released']);
  // Nor those that come after it.
  await client.subscribe('three', () => undefined);
  await client.subscribe('two', () => undefined);
  expect(redis.made.map(({ listeners }) => [...listeners.keys()])).toEqual([['one', 'three', 'two']]);
});

it('A SUBSCRIBE that fails takes no other channel with it when the connection fails: the others are subscribed on a new one', async () => {
  const { redis, client, received } = await open(new Error('Connection closed'));
  await until(() => redis.made.length === 2 && redis.made[1]?.listeners.has('one'));
  expect(redis.made.map(({ isClosed }) => isClosed)).toEqual([true, false]);
  redis.made[1]?.listeners.get('one')?.('released', 'one');
  expect(received).toEqual(['released']);
  await client.unsubscribe('one');
  await until(() => redis.made[1]?.isClosed);
});

it.each(['onclose', 'onconnect'] as const)(
  'A connection for messages has one command at a time, and is made anew when it is lost: %s',
  async (lost) => {
    const redis = new RedisClientOfBun();
    const running: string[] = [];
    const first = await redis.duplicate();
    Object.assign(redis, { duplicate: async () => redis.made.at(-1) });
    Object.assign(first as object, {
      connected: false,
      connect: async () => running.push('connected'),
      async subscribe(channel: string) {
        running.push(`+${channel}`);
        await Promise.resolve();
        running.push(`-${channel}`);
      },
      unsubscribe: async (channel: string) => running.push(`left ${channel}`),
    });
    const client = fromBun(redis);
    const [heard, left] = [jest.fn(), jest.fn()];
    for (const listener of [heard, left]) client.on?.('ready', listener);
    client.off?.('ready', left);
    await Promise.all(['one', 'two'].map((channel) => client.subscribe(channel, () => undefined)));
    expect(running).toEqual(['connected', '+one', '-one', '+two', '-two']);
    const again = client.subscribe('three', () => undefined);
    await Promise.all([again, client.unsubscribe('one'), client.subscribe('one', () => undefined)]);
    expect(running.slice(5)).toEqual(['+three', '-three', 'left one', '+one', '-one']);
    redis.made.push(new RedisClientOfBun());
    (first as Record<typeof lost, () => void>)[lost]();
    await until(() => redis.made[1]?.listeners.has('two') && heard.mock.calls.length > 0);
    expect(left).not.toHaveBeenCalled();
    expect(redis.made[0]?.isClosed).toBe(true);
    for (const channel of ['one', 'two', 'three']) await client.unsubscribe(channel);
  },
);

it('A connection for messages that cannot be made is closed', async () => {
  const redis = new RedisClientOfBun();
  const made = new RedisClientOfBun();
  const refused = new Error('Connection refused');
  Object.assign(made, { connected: false, connect: () => Promise.reject(refused) });
  Object.assign(redis, { duplicate: async () => made });
  await expect(fromBun(redis).subscribe('one', () => undefined)).rejects.toBe(refused);
  expect(made.isClosed).toBe(true);
});

it('A connection for messages that fails is made anew after 50 ms, and then after pauses that double up to a second', async () => {
  using time = new FakeClock();
  const tried: number[] = [time.now];
  class Unreachable extends RedisClientOfBun {
    override async duplicate(): Promise<unknown> {
      if (this.made.length === 0) return super.duplicate();
      tried.push(time.now);
      throw new Error('Connection refused');
    }
  }
  const redis = new Unreachable();
  const client = fromBun(redis);
  await client.subscribe('one', () => undefined);
  redis.failures.set('two', new Error('Connection closed'));
  await expect(client.subscribe('two', () => undefined)).rejects.toThrow('Connection closed');
  await time.advance(4_000);
  expect(tried.slice(1).map((at, i) => at - (tried[i] as number))).toEqual([50, 100, 200, 400, 800, 1_000, 1_000]);
});

/** As Bun's client behaves that has tried to connect as often as its options say. */
class GivenUp extends RedisClientOfBun {
  override connected = true;
  isUp = true;
  tries = 0;

  override async send(): Promise<unknown> {
    if (!this.connected)
      throw Object.assign(new Error('Connection has failed'), { code: 'ERR_REDIS_CONNECTION_CLOSED' });
    return 'PONG';
  }

  async connect(): Promise<void> {
    this.tries++;
    await Promise.resolve();
    if (!this.isUp) throw new Error('Connection closed');
    this.connected = true;
  }

  override close(): void {
    super.close();
    this.connected = false;
  }
}

/** A client that was connected, and then was without Redis for as long as Bun tries to connect. */
async function givenUp() {
  const redis = new GivenUp();
  const client = fromBun(redis);
  await client.eval('return 1');
  redis.connected = false;
  return { redis, client };
}

it("A client of Bun's that has given up is connected again by the next command, once for all of them, and that is noticed", async () => {
  using time = new FakeClock();
  const { redis, client } = await givenUp();
  const ready = jest.fn();
  client.on?.('ready', ready);
  await time.advance(30_000);
  expect(await Promise.all([client.eval('return 1'), client.eval('return 2')])).toEqual(['PONG', 'PONG']);
  expect([redis.tries, ready.mock.calls.length]).toEqual([1, 1]);
});

it("A client of Bun's that has given up is tried again with each command while Redis is away, and the command fails", async () => {
  using time = new FakeClock();
  const { redis, client } = await givenUp();
  redis.isUp = false;
  await time.advance(30_000);
  for (const tries of [1, 2]) {
    await expect(client.eval('return 1')).rejects.toThrow('Connection has failed');
    expect(redis.tries).toBe(tries);
  }
  redis.isUp = true;
  expect(await client.eval('return 1')).toBe('PONG');
});

it("A client of Bun's that gave up while a command waited is connected again at once", async () => {
  const { redis, client } = await givenUp();
  const gaveUp = new Error('Max reconnection attempts reached');
  jest.spyOn(redis, 'send').mockRejectedValueOnce(gaveUp);
  await expect(client.eval('return 1')).rejects.toBe(gaveUp);
  expect(await client.eval('return 1')).toBe('PONG');
  expect(redis.tries).toBe(1);
});

it("A client of Bun's that the application has closed stays closed until the application connects it, and is not changed", async () => {
  using time = new FakeClock();
  const redis = new GivenUp();
  const methods = Object.keys(redis);
  const client = fromBun(redis);
  await client.eval('return 1');
  await time.advance(29_999);
  redis.close();
  for (let later = 0; later < 2; later++) {
    await expect(client.eval('return 1')).rejects.toThrow('Connection has failed');
    await time.advance(30_000);
  }
  expect([redis.tries, Object.keys(redis)]).toEqual([0, methods]);
  await redis.connect();
  expect(await client.eval('return 1')).toBe('PONG');
});
