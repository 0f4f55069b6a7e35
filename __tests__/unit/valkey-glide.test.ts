import { expect, it, jest } from '@jest/globals';
import { LockInspectionError, RedisLockRegistry } from '../../lib';
import { fromGlide, type Glide } from '../../lib/clients/valkey-glide';
import { FakeClock, promiseJobs } from '../support/fake-clock';
import { lateReply } from '../support/mock-redis';

class ClosingError extends Error {}

it('A list over a closed client of valkey-glide says so, as every other call', async () => {
  const client: Glide & { invokeScript(): void } = {
    customCommand: () => Promise.reject(new ClosingError('Unable to execute requests; the client is closed.')),
    invokeScript: () => undefined,
    close: () => undefined,
  };
  const registry = new RedisLockRegistry(fromGlide(client), { registryKey: 'orders' });
  const error = await registry
    .list()
    .next()
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LockInspectionError);
  expect(error).toMatchObject({ cause: { name: 'ClientClosedError' } });
  await registry.close();
});

it('What a closed client of valkey-glide rejects with is no answer, whatever its class and its text', async () => {
  class Minified extends Error {}
  const failing = (message: string, isClosedMeanwhile: boolean) => {
    const client = {
      isClosed: false,
      customCommand: () => {
        client.isClosed = isClosedMeanwhile;
        return Promise.reject(new Minified(message));
      },
      invokeScript: () => undefined,
      close: () => undefined,
    };
    return fromGlide(client as Glide).eval('return 1');
  };
  const closed = { name: 'ClientClosedError' };
  await expect(failing('Unable to execute requests; the client is closed. Please', false)).rejects.toMatchObject(
    closed,
  );
  await expect(failing('going away', true)).rejects.toMatchObject(closed);
  await expect(failing('going away', false)).rejects.toBeInstanceOf(Minified);
  const answer = 'An error was signalled by the server: - ReadOnly: no';
  await expect(failing(answer, true)).rejects.toThrow('READONLY no');
});

it('A client of valkey-glide is without a connection when the process has none, where that count has counted it', async () => {
  using time = new FakeClock();
  let connections = 0;
  let isConnected = false;
  const getStatistics = jest.fn(() => ({ total_connections: String(connections) }));
  const client = fromGlide({
    getStatistics,
    customCommand: async (_words: string[], options?: object) => {
      await Promise.resolve();
      if (!isConnected) [isConnected, connections] = [true, 1];
      return JSON.stringify(options);
    },
    invokeScript: () => undefined,
    close: () => undefined,
  } as Glide);
  const ping = () => client.eval('return redis.call("PING")');
  // It connects with its first command.
  expect(client.isReady).toBe(true);
  // Strings, whatever the application's own replies are.
  expect(await ping()).toBe('{"decoder":0}');
  expect(client.isReady).toBe(true);
  connections = 0;
  expect(client.isReady).toBe(false);
  getStatistics.mockClear();
  await ping();
  expect(getStatistics).not.toHaveBeenCalled();
  // Redis answers: so the count is wrong.
  await time.advance(1_000);
  await ping();
  expect(client.isReady).toBe(true);
});

it('The client of valkey-glide for messages keeps no process alive, and ends with its last channel', async () => {
  const done = async (): Promise<void> => undefined;
  const subscribe = jest.fn(done);
  const unsubscribe = jest.fn((..._: unknown[]): Promise<unknown> => done());
  const own = { socket: { unref: jest.fn() }, subscribe, unsubscribe, close: jest.fn() };
  class Client {
    static readonly createClient = async () => own;
    readonly config = {};
    readonly customCommand = done;
    invokeScript(): void {}
    close(): void {}
  }
  const client = fromGlide(new Client());
  await client.subscribe('channel', () => undefined);
  expect(own.socket.unref).toHaveBeenCalledTimes(1);
  // What the server refuses is about one channel, and not about the connection.
  const refusal = 'An error was signalled by the server: - PermissionDenied: No permissions to access a channel';
  subscribe.mockRejectedValueOnce(new Error(refusal));
  await expect(client.subscribe('secret', () => undefined)).rejects.toThrow(/^NOPERM No permissions/);
  expect(own.close).not.toHaveBeenCalled();
  const unsubscribed = lateReply();
  unsubscribe.mockReturnValueOnce(unsubscribed.promise);
  await client.unsubscribe('channel');
  await promiseJobs();
  // valkey-glide prints an error for a client that is closed while it has channels.
  expect(unsubscribe).toHaveBeenLastCalledWith(null, 5_000);
  expect(own.close).not.toHaveBeenCalled();
  unsubscribed.resolve(undefined);
  await promiseJobs();
  expect(own.close).toHaveBeenCalledTimes(1);
});

it('A client of valkey-glide for a cluster leaves sharded channels as such, and names the errors of the server', async () => {
  const done = jest.fn(async (): Promise<void> => undefined);
  const own = { ssubscribe: async () => undefined, sunsubscribe: done, close: () => undefined };
  class Client {
    static readonly createClient = async () => own;
    readonly config = {};
    readonly invokeScriptWithRoute = done;
    customCommand = () => Promise.reject(new Error('An error was signalled by the server: - Wrongkind: It is no lock'));
    invokeScript(): void {}
    close(): void {}
  }
  const client = fromGlide(new Client());
  for (const channel of ['one', 'other']) await client.sSubscribe?.(channel, () => undefined);
  await client.sUnsubscribe?.('one');
  expect(done.mock.calls).toEqual([[['one'], 5_000]]);
  await expect(client.eval('return 1')).rejects.toThrow(/^WRONGKIND It is no lock$/);
});

it('The client of valkey-glide for messages is closed after all channels were left, not under what it has yet to write', async () => {
  let answer = (): void => undefined;
  const left = new Promise<void>((resolve) => (answer = resolve));
  const own = { subscribe: async () => undefined, unsubscribe: () => left, close: jest.fn() };
  class Client {
    static readonly createClient = async () => own;
    readonly config = {};
    readonly customCommand = async () => undefined;
    invokeScript(): void {}
    close(): void {}
  }
  const client = fromGlide(new Client());
  for (const channel of ['one', 'other']) await client.subscribe(channel, () => undefined);
  const leaving = ['one', 'other'].map((channel) => client.unsubscribe(channel));
  await new Promise(setImmediate);
  expect(own.close).not.toHaveBeenCalled();
  answer();
  await Promise.all(leaving);
  await new Promise(setImmediate);
  expect(own.close).toHaveBeenCalledTimes(1);
});
