import { beforeEach, expect, it, jest } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, refused } from '../support/mock-redis';

/** ms; a process that has no connection for messages tries again after this time. */
const RETRY_AFTER = 10_000;

const time = FakeClock.install();
/** The listeners of each channel, by its name. */
let channels: Map<string, (message: string) => void>;

beforeEach(() => {
  channels = new Map();
});

/** A connection for messages, which is always open. */
const listening = () => ({
  isOpen: true,
  isReady: true,
  on() {},
  unref() {},
  destroy() {},
  connect: async () => undefined,
  subscribe: async (name: string, listener: (message: string) => void) => void channels.set(name, listener),
  unsubscribe: async (name: string) => void channels.delete(name),
});

/** A client with one connection, which can be duplicated. */
function client(duplicate: () => object = listening) {
  return Object.assign(mockRedis(), { socketEpoch: 1, isOpen: true, duplicate: jest.fn(duplicate) });
}

type Client = ReturnType<typeof client>;

/** ms; how often the lock goes from one owner to the next. */
const TURN = 700;

function passedAround(redis: Client): void {
  redis.evalSha.mockImplementation(async () => refused(60_000, `another:${Math.floor(time.now / TURN)}`));
}

/** A caller that waits for `ms`, in vain. `meanwhile` is called after each turn. */
async function waited(redis: Client, ms: number, meanwhile = () => {}): Promise<void> {
  const options = { registryKey: 'locks', lockType: 'pub-sub', idleBetweenTries: 500 } as const;
  const registry = new RedisLockRegistry(redis, { ...options, onWarning: () => {} });
  const rejected = expect(registry.obtain('key').lock({ waitTime: ms })).rejects.toThrow('not free');
  for (let passed = 0; passed <= ms; passed += TURN) {
    await time.advance(TURN);
    meanwhile();
  }
  await rejected;
  await registry.close({ timeout: 0 });
}

it('The connection for messages is tried again ten seconds after it could not be made, and not before', async () => {
  const redis = client(() => {
    throw new Error('no more connections');
  });
  passedAround(redis);
  await waited(redis, 3.5 * RETRY_AFTER);
  expect(redis.duplicate).toHaveBeenCalledTimes(4);
});

it('The connection for messages is not made anew where a message comes of each release', async () => {
  const redis = client();
  passedAround(redis);
  await waited(redis, 20_000, () => channels.get('locks-channel:locks:key')?.('locks:key'));
  expect(redis.duplicate).toHaveBeenCalledTimes(1);
});

it('The connection for messages is not made anew where one owner has the lock all the time', async () => {
  const redis = client();
  redis.evalSha.mockResolvedValue(refused(60_000, 'another:1'));
  await waited(redis, 20_000);
  expect(redis.duplicate).toHaveBeenCalledTimes(1);
  // Ten intervals between two polls.
  expect(redis.sent).toBeGreaterThanOrEqual(5);
  expect(redis.sent).toBeLessThanOrEqual(8);
});

it('The connection for messages is not made while the client is closed, and is made when it is open again', async () => {
  const redis = client();
  passedAround(redis);
  redis.isOpen = false;
  await waited(redis, 1_000);
  expect(redis.duplicate).not.toHaveBeenCalled();
  redis.isOpen = true;
  await waited(redis, 1_000);
  expect(redis.duplicate).toHaveBeenCalledTimes(1);
});
