import { beforeEach, describe, expect, it } from '@jest/globals';
import { LockTimeoutError, RedisLockRegistry } from '../../lib';
import { instrumentLocks } from '../../lib/integrations/opentelemetry';
import { InMemoryLockRegistry } from '../../lib/testing';
import { dashboard } from '../../lib/tools/dashboard';
import { mockRedis } from '../support/mock-redis';

let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;
let memory: InMemoryLockRegistry;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
  memory = new InMemoryLockRegistry();
});

/** An option, and a value that is none; the call; the options that it needs besides. */
type Taker = readonly [bad: readonly [name: string, value: unknown], call: (how: never) => unknown, needed?: object];

const task = () => {
  throw new Error('It ran');
};
const across = { available: task, commit: task };
const TTL = ['ttl', 'abc'] as const;

/** Every public function that takes options. */
const TAKERS: Record<string, Taker> = {
  'new RedisLockRegistry()': [['renew', 'yes'], (how) => new RedisLockRegistry(redis, how), { registryKey: 'o' }],
  'new InMemoryLockRegistry()': [['fencing', 1], (how) => new InMemoryLockRegistry(how)],
  'list()': [['count', 0], (how) => registry.list(how)],
  'close()': [['timeout', -1], (how) => registry.close(how)],
  'close() of locks in memory': [['timeout', -1], (how) => memory.close(how)],
  'semaphore()': [['permits', 0], (how) => registry.semaphore('key', how)],
  'segmented()': [['random', 0.5], (how) => registry.segmented('key', how), { segments: 2 }],
  'lock()': [TTL, (how) => registry.obtain('key').lock(how)],
  'tryLock()': [TTL, (how) => registry.obtain('key').tryLock(how)],
  'run()': [TTL, (how) => registry.run('key', task, how)],
  'tryRun()': [TTL, (how) => registry.tryRun('key', task, how)],
  'lock() of a semaphore': [TTL, (how) => registry.semaphore('key', { permits: 2 }).lock(how)],
  'lock() for reading': [TTL, (how) => registry.readWrite('key').read.lock(how)],
  'tryRun() for writing': [TTL, (how) => registry.readWrite('key').write.tryRun(task, how)],
  'lock() of several keys': [TTL, (how) => registry.multi(['a', 'b']).lock(how)],
  'tryLock() of several keys': [TTL, (how) => registry.multi(['a', 'b']).tryLock(how)],
  'run() of several keys': [TTL, (how) => registry.multi(['a', 'b']).run(task, how)],
  'run() of a segmented lock': [TTL, (how) => segmented().run(task, how)],
  'runAcross()': [TTL, (how) => segmented().runAcross(1, across, how)],
  'runAll()': [TTL, (how) => segmented().runAll(task, how)],
  'eval() of a lease': [['keys', 'stock'], (how) => memory.run('key', (lease) => lease.eval('return 1', how))],
  'expire() of locks in memory': [['registryKey', 1], (how) => memory.locks.expire('key', how)],
  'steal() of locks in memory': [['ttl', 1], (how) => memory.locks.steal('key', how)],
  'holder() of locks in memory': [['registryKey', 1], (how) => memory.locks.holder('key', how)],
  'instrumentLocks()': [['group', 'orders'], (how) => instrumentLocks(how)],
  'dashboard()': [['actions', 'yes'], (how) => dashboard(redis, how), { token: 'a secret of some length' }],
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

describe.each(Object.entries(TAKERS))('%s', (_, [[name, value], call, needed = {}]) => {
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
  for (const lock of [registry.obtain('key'), registry.multi(['a', 'b']), registry.readWrite('key').read]) {
    await expect(lock.lock({ permits: 2 })).rejects.toThrow(message);
  }
});
