import { inspect } from 'node:util';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { DistributedLock, LockWarning } from '../../lib';
import { emitProcessWarning } from '../../lib/api/warnings';
import { MAX_DELAY } from '../../lib/internal/clock';
import { InMemoryLockRegistry, type InMemoryLockRegistryOptions, InMemoryLocks } from '../../lib/testing';
import { FakeClock } from '../support/fake-clock';

const registries: InMemoryLockRegistry[] = [];

// Before the clock is restored.
afterEach(async () => {
  await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
  expect(time.pending).toBe(0);
});

const time = FakeClock.install();
let warnings: LockWarning[];

beforeEach(() => {
  warnings = [];
});

function create(options: InMemoryLockRegistryOptions) {
  const onWarning = (warning: LockWarning) => void warnings.push(warning);
  const registry = new InMemoryLockRegistry({ ...options, onWarning });
  registries.push(registry);
  return registry;
}

function dropALease(lock: DistributedLock) {
  return lock.lock();
}

it('A wait that is long causes a warning after warnAfter, and after each doubling of that, until it is over', async () => {
  const registry = create({ warnAfter: 30_000 });
  const lease = await registry.obtain('key').lock();
  const first = registry.obtain('key').lock();
  await time.advance(100_000);
  const second = registry.obtain('key').lock();
  await time.advance(150_000);
  // Those that become long within 100 ms are reported together: a second more after some doublings.
  const seconds = warnings.map(({ message }) => Number(/^A caller has .* for (\d+) s/.exec(message)?.[1]));
  expect(seconds).toEqual([30, 60, 121, 30, 60, 121, 242]);
  await lease.unlock();
  await (await first).unlock();
  await (await second).unlock();
  const { length } = warnings;
  await time.advance(3_600_000);
  expect(warnings).toHaveLength(length);
});

it.each([
  ['a lock', (registry: InMemoryLockRegistry) => registry.obtain('key')],
  ['a semaphore', (registry: InMemoryLockRegistry) => registry.semaphore('key', { permits: 2 })],
  ['a lock for reading', (registry: InMemoryLockRegistry) => registry.readWrite('key').read],
  ['a lock for writing', (registry: InMemoryLockRegistry) => registry.readWrite('key').write],
  ['a lock of several keys', (registry: InMemoryLockRegistry) => registry.multi(['key'])],
])('A lease of %s that is held for long causes a warning after warnHeldAfter, and each doubling', async (_, of) => {
  const registry = create({ warnHeldAfter: 120_000 });
  await dropALease(of(registry));
  await time.advance(119_999);
  expect(warnings).toEqual([]);
  await time.advance(1);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatchObject({ code: 'LONG_HOLD', key: 'key' });
  expect(warnings[0]?.message).toMatch(
    /^This process has held lock "key" for 120 s, and it is renewed until it is unlocked \(owner .*:\d+\)$/,
  );
  expect(warnings[0]?.stack).toBeUndefined();
  await time.advance(600_000);
  const seconds = warnings.map(({ message }) => Number(/for (\d+) s/.exec(message)?.[1]));
  expect(seconds).toEqual([120, 240, 480]);
});

it('A lease that is held for long says where it was asked for, with captureStack', async () => {
  const registry = create({ warnHeldAfter: 1_000, captureStack: true });
  await dropALease(registry.obtain('key'));
  void registry.run('other', () => new Promise(() => undefined));
  await time.advance(1_100);
  expect(warnings.map(({ key, stack }) => [key, /dropALease.*long-holds\.test/.test(stack ?? '')])).toEqual([
    ['key', true],
    ['other', false],
  ]);
  expect(warnings[1]?.stack).toMatch(/long-holds\.test/);
});

it('A lease that is held for long leaves no timer where the registry is closed by the listener', async () => {
  const onWarning = () => void registry.close({ timeout: 0 });
  const registry = new InMemoryLockRegistry({ warnHeldAfter: 1_000, onWarning });
  await registry.obtain('key').lock();
  await time.advance(1_000);
  expect(time.pending).toBe(0);
});

it('A lease that is held for long that is passed on begins anew, and says where its own caller is', async () => {
  const registry = create({ warnHeldAfter: 1_000, captureStack: true });
  const lock = registry.obtain('key');
  const first = await lock.lock();
  const second = dropALease(lock);
  await time.advance(900);
  await first.unlock();
  await second;
  await time.advance(900);
  expect(warnings).toEqual([]);
  await time.advance(200);
  expect(warnings[0]?.stack).toMatch(/dropALease/);
});

it('A lease that is held for long does not delay the warning about one that began later', async () => {
  const registry = create({ warnHeldAfter: 1_000 });
  await registry.obtain('first').lock();
  await time.advance(4_500);
  await registry.obtain('second').lock();
  await time.advance(1_001);
  expect(warnings.map(({ key }) => key)).toEqual(['first', 'first', 'first', 'second']);
});

it('A lease that was unlocked or lost before causes no warning about a long hold; nor without the option', async () => {
  const registry = create({ warnHeldAfter: 1_000, expireAfter: 300, renew: false });
  await (await registry.obtain('unlocked').lock()).unlock();
  await registry.obtain('lost').lock();
  await dropALease(create({}).obtain('key'));
  await time.advance(200_000);
  expect(warnings).toEqual([]);
});

it('A lease that is held for long is held by the process that has adopted it, and no more by the one that has detached it', async () => {
  const options = { locks: new InMemoryLocks(), warnHeldAfter: 1_000 };
  const [one, other] = [create(options), create(options)];
  const text = await (await one.obtain('key').lock()).detach();
  await time.advance(2_000);
  expect(warnings).toEqual([]);
  const adopting = other.adopt(text);
  await time.advance(900);
  const lease = await adopting;
  expect(warnings).toEqual([]);
  await time.advance(200);
  expect(warnings).toMatchObject([{ code: 'LONG_HOLD', key: 'key' }]);
  await lease.unlock();
});

it('A lease that is held for long says that it ends with its ttl, where it is not renewed', async () => {
  const registry = create({ warnHeldAfter: 1_000 });
  await registry.obtain('key').lock({ ttl: 60_000 });
  await time.advance(1_100);
  expect(warnings[0]?.message).toMatch(/for 1 s, and it ends with its ttl/);
});

it('A lease that is held for long sets one timer, which keeps no process alive and is never too long', async () => {
  const registry = create({ warnHeldAfter: MAX_DELAY });
  await registry.obtain('key').lock();
  const { pending } = time;
  for (let i = 0; i < 100; i++) await registry.obtain(`key-${i}`).lock();
  expect(time.pending).toBe(pending);
  expect(time.keepingAlive).toBe(0);
  expect(Math.max(...time.delays)).toBeLessThanOrEqual(MAX_DELAY);
});

it('The default listener prints the stack below the message', async () => {
  const emitted = jest.spyOn(process, 'emitWarning').mockReturnValue();
  emitProcessWarning({ code: 'LONG_HOLD', message: 'held for long', stack: 'Error\n    at here' });
  const expected = { type: 'LockWarning', code: 'LONG_HOLD', detail: 'Error\n    at here' };
  expect(emitted.mock.calls).toEqual([['held for long', expected]]);
  emitted.mockRestore();
});

it('console.log of a lock prints one line: the state of its hold, and no other internals', async () => {
  const registry = create({});
  const lock = registry.obtain("o'clock");
  const lease = await lock.lock();
  const { read, write } = registry.readWrite('prices');
  const asking = write.lock();
  const printed = [lock, read, write, registry.semaphore('render', { permits: 3 }), registry.multi(['b', 'a'])];
  expect(printed.map((one) => inspect(one))).toEqual([
    `Lock { key: "o'clock", lockType: 'fair', state: 'held', isAcquiredInThisProcess: true }`,
    `Lock { key: 'prices', lockType: 'read', state: 'free here', isAcquiredInThisProcess: false }`,
    `Lock { key: 'prices', lockType: 'write', state: 'asked', isAcquiredInThisProcess: false }`,
    `Lock { key: 'render', lockType: 'semaphore', state: 'free here', isAcquiredInThisProcess: false }`,
    `MultiLock { key: 'a + b', isAcquiredInThisProcess: false }`,
  ]);
  expect(inspect(registry.segmented('stock', { segments: 20 }))).toBe("SegmentedLock { key: 'stock', segments: 20 }");
  await lease.unlock();
  await (await asking).unlock();
});
