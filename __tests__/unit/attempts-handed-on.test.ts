import { EventEmitter } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import type { DistributedLock, LockOptions, RedisLockRegistry } from '../../lib';
import type { RedisLock } from '../../lib/core/lock';
import { clock } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, nextReply, sharedGranted, sharedRefused, sharedReleased, silence } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;
let semaphore: DistributedLock;

beforeEach(() => {
  redis = Object.assign(mockRedis(), { socketEpoch: 1 });
  redis.evalSha.mockResolvedValue([0, 0, 2]);
  registry = createRegistry(redis).registry;
  semaphore = registry.semaphore('key', { permits: 2 });
});

/**
 * A caller gets the permit of another one of its process while its attempt is in flight. Resolves to that attempt, and
 * to the call of the next caller, which has the turn now.
 */
async function handOn(options: LockOptions, take: 'lock' | 'tryLock' = 'lock') {
  const before = await semaphore.lock();
  const attempt = nextReply(redis);
  const [first, next] = [semaphore[take](), semaphore.lock(options)];
  await time.advance(1);
  const owner = owners().at(-1);
  await before.unlock();
  const lease = await first;
  lease?.assertHeld();
  return { attempt, next, owner, lease };
}

/** The owner values of all commands. */
const owners = () => redis.calls.map((options) => options?.arguments?.[1]);

it('An attempt in flight goes on to the next caller that asks for the same', async () => {
  const { attempt, next } = await handOn({});
  const { sent } = redis;
  await time.advance(10);
  expect(redis.sent).toBe(sent);
  attempt.resolve(sharedGranted);
  (await next).assertHeld();
});

it('While an attempt that went on to the next caller is in flight, a lease that ends is released by a command of its own', async () => {
  const { lease, next } = await handOn({});
  next.catch(() => undefined);
  await time.advance(100);
  redis.evalSha.mockResolvedValue(sharedReleased);
  await lease?.unlock();
  expect(redis.calls.at(-1)?.arguments?.slice(0, 2)).toEqual(['semaphore', owners()[0]]);
  expect(redis.calls.at(-1)?.arguments).toHaveLength(3);
});

it.each<[LockOptions, 'lock' | 'tryLock']>([
  [{ minHold: 1_000 }, 'lock'],
  [{ ttl: 5_000 }, 'lock'],
  [{ permits: 2 }, 'lock'],
  // That of a caller that does not wait leaves no position in the queue.
  [{}, 'tryLock'],
])(
  'An attempt in flight does not go on to a caller that asks for %p behind %s(): it makes one of its own, and the other is given back',
  async (options, take) => {
    const { attempt, next, owner } = await handOn(options, take);
    await time.advance(1);
    expect(new Set(owners()).size).toBe(3);
    (await next).assertHeld();
    attempt.resolve([0, 0, 2]);
    await time.advance(1_000);
    expect(owners().slice(-1)).toEqual([owner]);
  },
);

it('An attempt in flight of a caller that got a hold of its process is given back where nobody waits', async () => {
  const before = await semaphore.lock();
  redis.evalSha.mockResolvedValueOnce(sharedRefused(60_000, 2)).mockImplementation(silence);
  const first = semaphore.lock();
  await time.advance(25); // a poll
  const { sent } = redis;
  await before.unlock();
  (await first).assertHeld();
  await time.advance(300);
  expect(redis.sent).toBe(sent + 1);
});

it('A caller that got a hold of its process keeps it, though a message lets it in at the same moment', async () => {
  const before = await semaphore.lock();
  const protocol = (semaphore as RedisLock).passing.openProtocol();
  const { wait } = protocol;
  let isLetIn = false;
  protocol.wait = async (hold, ...others) => {
    const woken = await wait.call(protocol, hold, ...others);
    if (!isLetIn) return woken;
    return {
      granted: true,
      owner: hold.ticket,
      until: clock.now() + 1_000,
      fencingToken: undefined,
      drift: hold.drift,
    };
  };
  redis.evalSha.mockResolvedValue(sharedRefused(60_000, 2));
  const first = semaphore.lock();
  await time.advance(25);
  isLetIn = true;
  await before.unlock();
  (await first).assertHeld();
});

it('A position in the queue goes on to the next caller that asks for the same, which gives it back once when it gives up, though a connection was lost before', async () => {
  const client = Object.assign(new EventEmitter(), redis);
  semaphore = createRegistry(client).registry.semaphore('key', { permits: 2 });
  client.emit('client-error');
  const before = await semaphore.lock();
  redis.evalSha.mockResolvedValue(sharedRefused(60_000, 2));
  const stop = new AbortController();
  const [first, next] = [semaphore.lock(), semaphore.lock({ signal: stop.signal })];
  await time.advance(1);
  const [queued, { sent }] = [owners().at(-1), redis];
  await before.unlock();
  (await first).assertHeld();
  await time.advance(1);
  expect(redis.sent).toBe(sent);
  stop.abort('left');
  await expect(next).rejects.toBe('left');
  await time.advance(5_000);
  expect(owners().slice(sent)).toEqual([queued]);
});

it('A reader that stands back for a writer, and has asked for nothing yet, gets a hold of its process', async () => {
  const { read } = registry.readWrite('key');
  const inside = await read.lock(); // a writer waits, says Redis
  const waiting = read.lock();
  await time.advance(1);
  redis.evalSha.mockResolvedValue(sharedGranted); // the writer has left
  const alone = await read.tryLock();
  const next = read.lock({ ttl: 200_000 });
  await time.advance(1);
  const { sent } = redis;
  await alone?.unlock();
  (await waiting).assertHeld();
  (await next).assertHeld();
  // By the next caller, which has the turn now.
  expect(redis.sent).toBe(sent + 1);
  inside.assertHeld();
});

it('A lease of an attempt that went on to another caller is released by one command', async () => {
  const { attempt, next } = await handOn({});
  const owner = owners().at(-1);
  attempt.resolve(sharedGranted);
  redis.evalSha.mockResolvedValue(sharedReleased);
  await (await next).unlock();
  await time.advance(120_000);
  expect(owners().filter((one) => one === owner)).toHaveLength(2);
});

it('An attempt in flight of a caller that got a hold of its process is no silence for the next one', async () => {
  semaphore = createRegistry(redis, { unavailableAfter: 500 }).registry.semaphore('key', { permits: 2 });
  redis.evalSha.mockResolvedValueOnce([0, 0, 2]).mockImplementationOnce(silence);
  const before = await semaphore.lock();
  const [first, next] = [semaphore.lock(), semaphore.lock({ minHold: 1_000 })];
  await time.advance(45);
  const attempt = nextReply(redis);
  await before.unlock();
  (await first).assertHeld();
  await time.advance(480);
  attempt.resolve([0, 0, 2]);
  (await next).assertHeld();
});

it('A reader whose attempt ends a lease of its process has its answer at once, though a writer waits', async () => {
  const { read } = registry.readWrite('key');
  const one = await read.lock(); // a writer waits, says Redis
  await read.tryLock();
  for (let i = 0; i < 2; i++) redis.evalSha.mockResolvedValueOnce(sharedRefused(60_000, 0));
  const waiting = read.lock();
  await time.advance(105);
  const attempt = nextReply(redis);
  const unlocked = one.unlock();
  await time.advance(1);
  attempt.resolve([1, 0, 2]);
  await unlocked;
  await time.advance(1);
  expect((read as RedisLock).passing.leases).toContain(await Promise.race([waiting, undefined]));
});

it('A caller gets one of two holds that end at once, and the other one is released', async () => {
  const before = [await semaphore.lock(), await semaphore.lock()];
  redis.evalSha.mockImplementationOnce(silence).mockResolvedValue(sharedReleased);
  const waiting = semaphore.lock();
  await time.advance(1);
  await Promise.all(before.map((lease) => lease.unlock()));
  (await waiting).assertHeld();
  expect(redis.calls.at(-1)?.arguments?.slice(0, 2)).toEqual(['semaphore', owners()[1]]);
});

it('A caller does not get the hold of one that had fewer permits', async () => {
  const before = await semaphore.lock();
  redis.evalSha.mockImplementation(silence);
  let isGranted = false;
  const locking = semaphore.lock({ permits: 2 }).then(() => (isGranted = true));
  locking.catch(() => undefined);
  await time.advance(1);
  void before.unlock().catch(() => undefined);
  await time.advance(10);
  expect(isGranted).toBe(false);
});

it('A hold goes to the caller that has the turn, and not to one that makes a single attempt beside it', async () => {
  const before = await semaphore.lock();
  redis.evalSha.mockImplementation(silence);
  const settled: string[] = [];
  for (const take of ['lock', 'tryLock'] as const) {
    semaphore[take]().then(
      () => settled.push(take),
      () => undefined,
    );
    await time.advance(1);
  }
  await before.unlock();
  await time.advance(1);
  expect(settled).toEqual(['lock']);
});
