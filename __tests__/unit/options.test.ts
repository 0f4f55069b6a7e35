import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockTimeoutError, RedisLockRegistry } from '../../lib';
import { dashboard } from '../../lib/dashboard';
import { instrumentLocks } from '../../lib/opentelemetry';
import { InMemoryLockRegistry } from '../../lib/testing';
import { mockRedis } from '../support/mock-redis';

let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;
let memory: InMemoryLockRegistry;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
  memory = new InMemoryLockRegistry();
});

interface Taker {
  /** Options that are complete but for the one that the test adds. */
  readonly needed: object;
  /** The name of an option, and a value that is none. */
  readonly bad: readonly [name: string, value: unknown];
  readonly call: (options: never) => unknown;
}

const task = () => {
  throw new Error('It ran');
};
const across = { available: task, commit: task };
const none = { needed: {} };
const ofCall = { needed: {}, bad: ['ttl', 'abc'] } as const;

/** Every public function that takes options. */
const TAKERS: Record<string, Taker> = {
  'new RedisLockRegistry()': {
    needed: { registryKey: 'o' },
    bad: ['lockType', 'zookeeper'],
    call: (options) => new RedisLockRegistry(redis, options),
  },
  'new InMemoryLockRegistry()': { ...none, bad: ['fencing', 1], call: (options) => new InMemoryLockRegistry(options) },
  'list()': { ...none, bad: ['count', 0], call: (options) => registry.list(options) },
  'close()': { ...none, bad: ['timeout', -1], call: (options) => registry.close(options) },
  'close() of locks in memory': { ...none, bad: ['timeout', -1], call: (options) => memory.close(options) },
  'semaphore()': { needed: {}, bad: ['permits', 0], call: (options) => registry.semaphore('key', options) },
  'segmented()': {
    needed: { segments: 2 },
    bad: ['random', 0.5],
    call: (options) => registry.segmented('key', options),
  },
  'lock()': { ...ofCall, call: (options) => registry.obtain('key').lock(options) },
  'tryLock()': { ...ofCall, call: (options) => registry.obtain('key').tryLock(options) },
  'run()': { ...ofCall, call: (options) => registry.run('key', task, options) },
  'tryRun()': { ...ofCall, call: (options) => registry.tryRun('key', task, options) },
  'lock() of a semaphore': { ...ofCall, call: (options) => registry.semaphore('key', { permits: 2 }).lock(options) },
  'lock() for reading': { ...ofCall, call: (options) => registry.readWrite('key').read.lock(options) },
  'tryRun() for writing': { ...ofCall, call: (options) => registry.readWrite('key').write.tryRun(task, options) },
  'lock() of several keys': { ...ofCall, call: (options) => registry.multi(['a', 'b']).lock(options) },
  'tryLock() of several keys': { ...ofCall, call: (options) => registry.multi(['a', 'b']).tryLock(options) },
  'run() of several keys': { ...ofCall, call: (options) => registry.multi(['a', 'b']).run(task, options) },
  'run() of a segmented lock': { ...ofCall, call: (options) => segmented().run(task, options) },
  'runAcross()': { ...ofCall, call: (options) => segmented().runAcross(1, across, options) },
  'runAll()': { ...ofCall, call: (options) => segmented().runAll(task, options) },
  'eval() of a lease': {
    ...none,
    bad: ['keys', 'stock'],
    call: (options) => memory.run('key', (lease) => lease.eval('return 1', options)),
  },
  'expire() of locks in memory': {
    ...none,
    bad: ['registryKey', 1],
    call: (options) => memory.locks.expire('key', options),
  },
  'steal() of locks in memory': { ...none, bad: ['ttl', 1], call: (options) => memory.locks.steal('key', options) },
  'holder() of locks in memory': {
    ...none,
    bad: ['registryKey', 1],
    call: (options) => memory.locks.holder('key', options),
  },
  'instrumentLocks()': { ...none, bad: ['group', 'orders'], call: (options) => instrumentLocks(options) },
  'dashboard()': {
    needed: { token: 'a secret of some length' },
    bad: ['actions', 'yes'],
    call: (options) => dashboard(redis, options),
  },
};

function segmented() {
  return registry.segmented('key', { segments: 2 });
}

/** Where an object may have a property. */
const PLACES: Record<string, (needed: object, name: string, value: unknown) => object> = {
  own: (needed, name, value) => ({ ...needed, [name]: value }),
  'from a getter': (needed, name, value) => Object.defineProperty({ ...needed }, name, { get: () => value }),
  inherited: (needed, name, value) => Object.assign(Object.create({ [name]: value }), needed),
  'from a getter of its class': (needed, name, value) => {
    class Options {}
    Object.defineProperty(Options.prototype, name, { get: () => value });
    return Object.assign(new Options(), needed);
  },
  'of an object without a prototype': (needed, name, value) =>
    Object.assign(Object.create(null), needed, { [name]: value }),
};

async function rejectionOf(call: () => unknown): Promise<unknown> {
  return (async () => call())().catch((error: unknown) => error);
}

describe.each(Object.entries(TAKERS))('%s', (_, { needed, bad: [name, value], call }) => {
  it.each(Object.entries(PLACES))(
    'A call refuses a bad value, and an option that it does not know: %s',
    async (_place, at) => {
      const refused = await rejectionOf(() => call(at(needed, name, value) as never));
      expect(refused).toBeInstanceOf(Error);
      expect(String(refused)).toContain(`Error: Expected \`${name}\` to be `);
      const unknown = await rejectionOf(() => call(at(needed, 'timeOut', 5) as never));
      expect(unknown).toBeInstanceOf(TypeError);
      expect(String(unknown)).toContain('Unknown option `timeOut` (5)');
      expect(redis.sent).toBe(0);
    },
  );

  it.each([null, 42, 'fast', []])('A call refuses %j in place of options', async (options) => {
    expect(await rejectionOf(() => call(options as never))).toBeInstanceOf(TypeError);
    expect(redis.sent).toBe(0);
  });
});

it('An option that is inherited counts as one that is own', async () => {
  class Fixed {
    get ttl() {
      return 1_000;
    }
  }
  const lease = await registry.obtain('key').lock(new Fixed());
  expect(lease.remaining).toBeLessThanOrEqual(1_000);
  // In a segment the options go to the lock of the segment.
  await segmented().run(({ lease: { remaining } }) => expect(remaining).toBeLessThanOrEqual(1_000), new Fixed());
  const held = registry.obtain('key').lock(Object.create({ waitTime: 20 }));
  await expect(held).rejects.toThrow(LockTimeoutError);
  const inherited = Object.assign(Object.create({ expireAfter: 2_000 }), { registryKey: 'other' });
  const other = await new RedisLockRegistry(redis, inherited).obtain('key').lock();
  expect(other.remaining).toBeLessThanOrEqual(2_000);
});

it.each(['lock', 'tryLock', 'run', 'tryRun'] as const)(
  'An option is read once by %s, so that what counts was checked',
  async (name) => {
    const given: unknown[] = [1_000, 'abc'];
    const reads: unknown[] = [];
    const options = {
      get ttl() {
        reads.push(0);
        return given.shift() as number;
      },
    };
    const lock = registry.obtain('key');
    if (name === 'lock' || name === 'tryLock') await lock[name](options);
    else await lock[name](() => undefined, options);
    expect(reads).toHaveLength(1);
  },
);

it('An option of a script is what it was when eval was called', async () => {
  const lease = await registry.obtain('key').lock();
  const keys = ['stock'];
  const evaluated = lease.eval('return 1', { keys });
  keys[0] = 'other';
  await evaluated;
  expect(redis.calls.at(-1)?.keys).toContain('stock');
  await lease.unlock();
});

it('An option that is an array has no holes', async () => {
  // biome-ignore lint/suspicious/noSparseArray: what the test is about
  const holes = [, 'a'] as string[];
  expect(() => registry.multi(holes)).toThrow('Expected `keys[0]` to be a string, got undefined');
  const lease = await registry.obtain('key').lock();
  const message = 'Expected `arguments[0]` to be a string, got undefined';
  await expect(lease.eval('return 1', { arguments: holes })).rejects.toThrow(message);
  await lease.unlock();
});

it('The option `permits` is 1 for a lock that has no more, and the error says so', async () => {
  const message = 'Expected `permits` to be 1, got 2 (number)';
  await expect(registry.obtain('key').lock({ permits: 2 })).rejects.toThrow(message);
});
