import { beforeEach, expect, it, jest } from '@jest/globals';
import { type Channel, Channels, type Listening, PlacedChannels } from '../../lib/clients/common/subscriptions';
import { clock } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { lateReply } from '../support/mock-redis';

const time = FakeClock.install();
const SERVER_ANSWER = new Error('NOPERM no rights for this channel');
const CUT = new Error('Socket closed unexpectedly');

/** Channels of servers that do what a test says. */
class Client extends PlacedChannels {
  /** What happened: connections that were made and closed, subscriptions, and that messages may have been missed. */
  readonly log: string[] = [];
  readonly sent: (readonly string[])[] = [];
  /** The address of each channel; `undefined`: not known now. */
  addressOf: (channel: Channel) => string | undefined = () => 'a';
  /** What the servers answer to SUBSCRIBE of a channel. */
  subscribed: (channel: Channel) => Promise<unknown> = async () => undefined;
  connected: () => Promise<unknown> = async () => undefined;
  /** Ends the last connection to an address. */
  readonly lose = new Map<string, () => void>();

  /** What happened since the last call, without the first events. */
  happened(without = 0): string {
    return this.log.splice(0).slice(without).join(', ');
  }

  isConnectedTo(address: string): boolean {
    return this.hasConnection(address);
  }

  arrive(message: string, channel: string): void {
    this.deliver(message, channel);
  }

  readonly scan = this.scanPage;
  readonly placeAll = this.place;

  protected async command(words: readonly string[]): Promise<unknown> {
    this.sent.push(words);
    return words[0] === 'SCAN' ? ['7', ['key']] : 'reply';
  }

  protected addressFor(channel: Channel): string | undefined {
    return this.addressOf(channel);
  }

  protected async connect(address: string, lost: () => void): Promise<Listening> {
    this.log.push(`connect ${address}`);
    this.lose.set(address, lost);
    await this.connected();
    return {
      subscribe: (channel) => {
        this.log.push(`${address}: +${channel.name}`);
        return this.subscribed(channel);
      },
      unsubscribe: async ({ name }) => void this.log.push(`${address}: -${name}`),
      close: () => this.log.push(`close ${address}`),
    };
  }

  protected restored(): void {
    this.log.push('restored');
  }

  protected override retrying({ name }: Channel): void {
    this.log.push(`retry ${name} first`);
  }
}

/** Channels that only count. */
class Counting extends Channels {
  readonly begun: Channel[] = [];

  protected async command(): Promise<unknown> {
    return undefined;
  }

  protected added(channel: Channel): void {
    this.begun.push(channel);
  }

  protected async removed(): Promise<void> {}

  readonly arrive = this.deliver;
  readonly refuse = this.drop;
}

let client: Client;
const [one, two] = [jest.fn(), jest.fn()];

beforeEach(() => {
  client = new Client();
  one.mockClear();
  two.mockClear();
});

it('A client of words sends scripts with the number of their keys, and pages of SCAN', async () => {
  expect(await client.eval('return 1')).toBe('reply');
  await client.evalSha('sha1', { keys: ['a', 'b'], arguments: ['c'] });
  await client.sendCommand(['PING']);
  expect(await client.scan('0', { MATCH: 'orders:*', COUNT: 50 })).toEqual({ cursor: '7', keys: ['key'] });
  expect(client.sent).toEqual([
    ['EVAL', 'return 1', '0'],
    ['EVALSHA', 'sha1', '2', 'a', 'b', 'c'],
    ['PING'],
    ['SCAN', '0', 'MATCH', 'orders:*', 'COUNT', '50'],
  ]);
});

it('A channel is subscribed once for all of its listeners, until the last one leaves', async () => {
  await client.subscribe('x', one);
  await client.subscribe('x', two);
  expect(client.happened()).toBe('connect a, a: +x');
  client.arrive('first', 'x');
  await client.unsubscribe('x', one);
  client.arrive('second', 'x');
  expect([one, two].map(({ mock }) => mock.calls.join(' '))).toEqual(['first,x', 'first,x second,x']);
  expect(client.happened()).toBe('');
  await client.unsubscribe('x', two);
  await time.advance(0);
  client.arrive('third', 'x');
  expect([client.happened(), client.isConnectedTo('a'), two.mock.calls.length]).toEqual(['close a', false, 2]);
});

it('A channel that is unsubscribed without a listener loses all; one that is not subscribed stays so', async () => {
  await client.subscribe('x', one);
  await client.subscribe('x', two);
  await client.subscribe('y', two);
  await client.unsubscribe('other');
  await client.sUnsubscribe('x');
  await client.unsubscribe('x');
  client.arrive('message', 'x');
  client.arrive('message', 'other');
  expect([one.mock.calls.length, two.mock.calls.length]).toEqual([0, 0]);
  expect(client.happened()).toBe('connect a, a: +x, a: +y, a: -x');
});

it('A sharded channel is another one than a plain one of its name', async () => {
  const channels: Channel[] = [];
  client.subscribed = async (channel) => channels.push(channel);
  await client.subscribe('x', one);
  await client.sSubscribe('x', two);
  expect(channels.map(({ isSharded }) => isSharded)).toEqual([false, true]);
  client.arrive('message', 'x');
  await client.unsubscribe('x', one);
  client.arrive('message', 'x');
  expect([one.mock.calls.length, two.mock.calls.length]).toEqual([1, 2]);
  await client.sUnsubscribe('x', two);
  await time.advance(0);
  expect(client.happened()).toBe('connect a, a: +x, a: +x, a: -x, close a');
});

it('A channel that is refused when another one of its name has followed leaves that one as it is', async () => {
  const counting = new Counting();
  void counting.subscribe('x', one).catch(() => undefined);
  void counting.subscribe('x', two).catch(() => undefined);
  expect(counting.begun).toHaveLength(1);
  await counting.unsubscribe('x');
  void counting.subscribe('x', two);
  await counting.refuse(counting.begun[0] as Channel, SERVER_ANSWER);
  counting.arrive('message', 'x');
  expect([counting.begun.length, one.mock.calls.length, two.mock.calls.length]).toEqual([2, 0, 1]);
});

it('A channel that its server refuses leaves those of the same connection as they are', async () => {
  await client.subscribe('x', one);
  client.subscribed = () => Promise.reject(SERVER_ANSWER);
  await expect(client.subscribe('y', two)).rejects.toBe(SERVER_ANSWER);
  client.subscribed = () => Promise.reject(new TypeError('a channel has a name'));
  await expect(client.subscribe('z', two)).rejects.toThrow('has a name');
  client.subscribed = async () => undefined;
  await client.subscribe('y', two);
  expect(client.happened()).toBe('connect a, a: +x, a: +y, a: -y, a: +z, a: -z, a: +y');
  expect(time.pending).toBe(0);
});

it('A channel that cannot be subscribed at first is refused; those that were subscribed are tried again', async () => {
  await client.subscribe('x', one);
  client.subscribed = () => Promise.reject(CUT);
  await expect(client.subscribe('y', two)).rejects.toBe(CUT);
  client.subscribed = async () => undefined;
  expect(client.happened()).toBe('connect a, a: +x, a: +y, close a');
  expect([time.pending, time.keepingAlive]).toEqual([1, 0]);
  await time.advance(49);
  expect(client.happened()).toBe('');
  await time.advance(1);
  expect(client.happened()).toBe('connect a, retry x first, a: +x, restored');
  client.arrive('message', 'x');
  expect(one).toHaveBeenCalledTimes(1);
});

it('A channel that was subscribed is tried again when its server refuses it for a while: who listens is not told', async () => {
  await client.subscribe('x', one);
  client.subscribed = () => Promise.reject(SERVER_ANSWER);
  client.lose.get('a')?.();
  await time.advance(50);
  expect(client.happened()).toBe('connect a, a: +x, close a, connect a, retry x first, a: +x');
  client.subscribed = async () => undefined;
  await time.advance(100);
  expect(client.happened()).toBe('retry x first, a: +x, restored');
  client.subscribed = () => Promise.reject(SERVER_ANSWER);
  client.addressOf = () => 'b';
  client.lose.get('a')?.();
  await time.advance(50);
  await client.unsubscribe('x');
  expect(client.happened()).toBe('close a, connect b, retry x first, b: +x, close b');
  expect(time.pending).toBe(0);
});

it('A channel that was subscribed is tried again after an error of the client about it', async () => {
  await client.subscribe('x', one);
  client.addressOf = () => 'b';
  client.subscribed = () => Promise.reject(new TypeError('not now'));
  client.lose.get('a')?.();
  await time.advance(50);
  client.subscribed = async () => undefined;
  client.happened();
  await time.advance(100);
  expect(client.happened()).toBe('retry x first, b: +x, restored');
});

it('A channel whose server is not known is looked for after 50 ms, twice that, and so on up to a second', async () => {
  client.addressOf = () => undefined;
  const retries: number[] = [];
  const confirmed = client.subscribe('x', one);
  const startedAt = time.now;
  for (let ms = 0; ms < 4_000; ms += 10) {
    await time.advance(10);
    if (client.happened() !== '') retries.push(time.now - startedAt);
  }
  expect(retries).toEqual([50, 150, 350, 750, 1_550, 2_550, 3_550]);
  client.addressOf = () => 'a';
  await time.advance(1_000);
  await confirmed;
  client.lose.get('a')?.();
  client.happened();
  await time.advance(50);
  expect(client.happened()).toContain('connect a');
});

it('A channel that nobody wants any more is not tried again, and leaves no timer', async () => {
  client.addressOf = () => undefined;
  const confirmed = client.subscribe('x', one);
  expect(time.pending).toBe(1);
  await client.unsubscribe('x', one);
  expect(time.pending).toBe(0);
  await expect(confirmed).rejects.toBeUndefined();
  await time.advance(1_000);
  expect(client.happened()).toBe('');
});

it('A channel is tried again after its connection was lost, also when all have left during an earlier try', async () => {
  await client.subscribe('x', one);
  client.lose.get('a')?.();
  await client.unsubscribe('x');
  await client.subscribe('y', one);
  client.happened();
  client.lose.get('a')?.();
  await time.advance(1_000);
  expect(client.happened()).toBe('close a, connect a, retry y first, a: +y, restored');
});

it('A channel is tried again also where timers are numbers, as in the fake timers of an application', async () => {
  const set = clock.setTimeout;
  clock.setTimeout = (callback, ms) => set(callback, ms) && (1 as unknown as NodeJS.Timeout);
  client.addressOf = () => undefined;
  const confirmed = client.subscribe('x', one);
  client.addressOf = () => 'a';
  await time.advance(50);
  await confirmed;
});

it('The channels of a connection that was lost are subscribed again over one, and messages may have been missed once', async () => {
  await Promise.all(['x', 'y', 'z'].map((name) => client.subscribe(name, one)));
  const over = client.lose.get('a');
  over?.();
  // Two calls that say the same end are one end.
  over?.();
  await time.advance(50);
  over?.();
  await time.advance(1_000);
  expect(client.happened(4)).toBe('close a, connect a, retry x first, a: +x, a: +y, a: +z, restored');
  // And once more when that one is lost.
  client.lose.get('a')?.();
  await time.advance(1_000);
  expect(client.happened()).toBe('close a, connect a, retry x first, a: +x, a: +y, a: +z, restored');
});

it('The channels of a client are counted while each of them is subscribed', async () => {
  const client = new Client();
  const late = lateReply();
  client.subscribed = () => late.promise;
  void client.subscribe('x', jest.fn());
  await time.advance(0);
  const areSubscribed = [client.isListening];
  late.resolve(undefined);
  await time.advance(0);
  areSubscribed.push(client.isListening);
  client.lose.get('a')?.();
  areSubscribed.push(client.isListening);
  await time.advance(50);
  areSubscribed.push(client.isListening);
  client.addressOf = () => undefined;
  void client.subscribe('y', jest.fn());
  areSubscribed.push(client.isListening);
  await client.unsubscribe('y');
  // The place of one that is subscribed is not known for a moment.
  client.placeAll();
  areSubscribed.push(client.isListening);
  await client.unsubscribe('x');
  expect(areSubscribed).toEqual([false, true, false, true, false, true]);
});

it('A channel that nobody wants any more is no missing one, though its subscription is refused after that', async () => {
  await client.subscribe('x', one);
  await client.subscribe('y', two);
  const late = lateReply();
  client.subscribed = async ({ name }) => (name === 'x' ? late.promise : undefined);
  client.lose.get('a')?.();
  await time.advance(50);
  await client.unsubscribe('x', one);
  late.reject(SERVER_ANSWER);
  await time.advance(1_000);
  expect([client.isListening, time.pending]).toEqual([true, 0]);
});

it('The channels of a connection stay when those of another one are lost', async () => {
  client.addressOf = ({ name }) => name;
  await client.subscribe('x', one);
  await client.subscribe('y', one);
  client.happened();
  client.lose.get('y')?.();
  await time.advance(50);
  expect(client.happened()).toBe('close y, connect y, retry y first, y: +y, restored');
  // One without channels would keep the process alive.
  await client.unsubscribe('x');
  await time.advance(0);
  expect(client.happened()).toBe('close x');
});

it('The channels of a connection that cannot be made are tried over another one, until it is made', async () => {
  await client.subscribe('x', one);
  client.connected = () => Promise.reject(CUT);
  client.lose.get('a')?.();
  await time.advance(150);
  client.connected = async () => undefined;
  client.happened();
  await time.advance(200);
  expect(client.happened()).toBe('connect a, retry x first, a: +x, restored');
});

it('The channels of a slot that has moved are subscribed where it is now, and left where it was', async () => {
  await client.subscribe('x', one);
  await client.subscribe('y', one);
  client.addressOf = ({ name }) => (name === 'x' ? 'b' : 'a');
  client.placeAll();
  await time.advance(0);
  expect(client.happened(3)).toBe('connect b, a: -x, b: +x, restored');
});

it('The channels of a client are not looked at when another one is subscribed: it may have thousands', async () => {
  const addressOf = jest.fn(() => 'a');
  client.addressOf = addressOf;
  for (const name of ['x', 'y', 'z']) await client.subscribe(name, one);
  expect(addressOf).toHaveBeenCalledTimes(3);
});

it('The channels of a connection that is late are not taken for those of the next one', async () => {
  const late = lateReply();
  client.subscribed = () => late.promise;
  let isConfirmed = false;
  client.subscribe('x', one).then(
    () => (isConfirmed = true),
    () => undefined,
  );
  await time.advance(0);
  client.subscribed = () => new Promise(() => undefined);
  client.lose.get('a')?.();
  await time.advance(50);
  late.resolve(undefined);
  await time.advance(0);
  expect(isConfirmed).toBe(false);
  expect(client.happened(2)).toBe('close a, connect a, retry x first, a: +x');
});

it('The channels of a connection that fails late are not taken from the next one', async () => {
  const late = lateReply();
  client.subscribed = () => late.promise;
  const confirmed = client.subscribe('x', one);
  await time.advance(0);
  client.subscribed = async () => undefined;
  client.lose.get('a')?.();
  await time.advance(50);
  late.reject(CUT);
  await confirmed;
  await time.advance(1_000);
  expect(client.happened(2)).toBe('close a, connect a, retry x first, a: +x');
  expect(client.isConnectedTo('a')).toBe(true);
});
