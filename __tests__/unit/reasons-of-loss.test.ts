import { afterEach, beforeEach, expect, it } from '@jest/globals';
import {
  type DistributedLock,
  type Lease,
  LockLostError,
  type LockWarning,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
} from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, renewed, silence } from '../support/mock-redis';

const registries: RedisLockRegistry[] = [];

// Before the clock is restored.
afterEach(() => Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 }))));

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let warnings: LockWarning[];

beforeEach(() => {
  redis = mockRedis();
  warnings = [];
});

function create(options: Partial<RedisLockRegistryOptions> = {}): RedisLockRegistry {
  const onWarning = (warning: LockWarning) => void warnings.push(warning);
  const registry = new RedisLockRegistry(redis, { registryKey: 'lost', expireAfter: 3_000, onWarning, ...options });
  registries.push(registry);
  return registry;
}

function lossOf(lease: Lease): LockLostError {
  expect(lease.signal.reason).toBeInstanceOf(LockLostError);
  return lease.signal.reason;
}

it('A loss by errors of the server has the last one as its cause, and says it', async () => {
  const lease = await create().obtain('key').lock();
  const down = new Error('CLUSTERDOWN The cluster is down');
  redis.evalSha.mockRejectedValue(down);
  await time.advance(3_000);
  expect(lossOf(lease)).toMatchObject({
    reason: 'unconfirmed',
    cause: down,
    message: 'Lock "key" was lost (unconfirmed): Redis did not confirm it in time (CLUSTERDOWN The cluster is down)',
  });
});

it('A loss by silence says that Redis did not confirm the lease in time, and for how long it did not answer', async () => {
  const lease = await create().obtain('key').lock();
  redis.evalSha.mockImplementation(silence);
  await time.advance(3_000);
  expect(lossOf(lease).message).toMatch(
    /\(unconfirmed\): Redis did not confirm it in time \(Redis did not answer within \d+ ms\)$/,
  );
});

it('A loss of a renewed lease in a process that stood still does not blame Redis', async () => {
  const lease = await create().obtain('key').lock();
  time.now += 5_000;
  time.wallNow += 5_000;
  expect(() => lease.assertHeld()).toThrow(LockLostError);
  expect(lossOf(lease)).toMatchObject({
    reason: 'unconfirmed',
    message:
      'Lock "key" was lost (unconfirmed): it was not renewed in time: this process stood still, or its event loop was blocked',
  });
});

it.each<[string, (registry: InMemoryLockRegistry) => DistributedLock]>([
  ['a lock', (registry) => registry.obtain('key')],
  ['a permit', (registry) => registry.semaphore('key', { permits: 2 })],
  ['a reader', (registry) => registry.readWrite('key').read],
  ['a writer', (registry) => registry.readWrite('key').write],
])('A loss says how it came of any kind of lock: of %s', async (_of, lockOf) => {
  const registry = new InMemoryLockRegistry({ expireAfter: 3_000 });
  const lease = await lockOf(registry).lock();
  time.now += 5_000;
  time.wallNow += 5_000;
  expect(() => lease.assertHeld()).toThrow(LockLostError);
  expect(lossOf(lease).message).toMatch(/: this process stood still, or its event loop was blocked$/);
  await registry.close({ timeout: 0 });
});

it.each([
  [30, '; its ttl was 30 ms'],
  [999, '; its ttl was 999 ms'],
  [1_000, ''],
])(
  'A loss of a lease says its ttl where that is less than a second, as of one who meant seconds: %d',
  async (ttl, said) => {
    const lease = await create({ expireAfter: ttl }).obtain('key').lock();
    time.now += 2_000;
    time.wallNow += 2_000;
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    expect(lossOf(lease).message.endsWith(`or its event loop was blocked${said}`)).toBe(true);
  },
);

it('A lease that is not held for certain since the machine was suspended says so', async () => {
  const lease = await create().obtain('key').lock();
  time.wallNow += 60_000;
  expect(() => lease.assertHeld()).toThrow(
    'was lost (unconfirmed): the machine was suspended, or its clock was set, and Redis has not confirmed it since',
  );
});

it.each<[string, Partial<RedisLockRegistryOptions>, object, number]>([
  ['a ttl of the call', {}, { ttl: 1_000 }, 1_000],
  ['the option renew', { renew: false }, {}, 3_000],
  ['maxHold', { maxHold: 1_000 }, {}, 3_000],
])(
  'A lease that ended with its ttl says so, and not that somebody deleted its key: by %s',
  async (_by, options, call, ttl) => {
    redis.evalSha.mockResolvedValue(renewed);
    const lease = await create(options).obtain('key').lock(call);
    await time.advance(8_000);
    const message = `Lock "key" was lost (expired): its ttl of ${ttl} ms was over, and it was not to be renewed: see \`renew\` and \`maxHold\``;
    expect(lossOf(lease).message).toBe(message);
    await expect(lease.unlock()).rejects.toThrow(message);
  },
);

it('A lease that Redis did not know any more before its ttl was over says what may have been', async () => {
  const lease = await create().obtain('key').lock({ ttl: 1_000 });
  redis.evalSha.mockResolvedValue(0);
  await expect(lease.unlock()).rejects.toThrow(/\(expired\): .*as by a forced unlock, or Redis restarted without it$/);
});

it('A lease that was lost in a pause of its process is not reported as one that is held for long', async () => {
  const lease = await create({ warnHeldAfter: 2_000 }).obtain('key').lock();
  time.now += 5_000;
  time.wallNow += 5_000;
  await time.advance(10_000);
  expect(lossOf(lease).reason).toBe('unconfirmed');
  expect(warnings.map(({ code }) => code)).not.toContain('LONG_HOLD');
});

it('A lease that is held for long, and whose renewals fail, is not said to be renewed', async () => {
  await create({ warnHeldAfter: 1_500 }).obtain('key').lock();
  redis.evalSha.mockRejectedValue(new Error('CLUSTERDOWN The cluster is down'));
  await time.advance(1_600);
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^This process has held lock "key" for 2 s, and its last renewal failed \(owner .*\)$/),
  ]);
});

it('No duration in a warning is 0 s', async () => {
  await create({ warnHeldAfter: 300 }).obtain('key').lock();
  await time.advance(400);
  expect(warnings[0]?.message).toContain('has held lock "key" for 300 ms,');
});
