import { beforeEach, expect, it } from '@jest/globals';
import type { DistributedLock, LockOptions } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, sharedGranted, sharedReleased, silence } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let semaphore: DistributedLock;

beforeEach(() => {
  redis = Object.assign(mockRedis(), { socketEpoch: 1 });
  redis.evalSha.mockResolvedValue(sharedGranted);
  semaphore = createRegistry(redis).registry.semaphore('key', { permits: 1 });
});

/**
 * A caller gets the permit of another one of its process while its attempt is in flight. Resolves to that attempt, and
 * to the call of the next caller, which has the turn now.
 */
async function handOn(options: LockOptions) {
  const before = await semaphore.lock();
  const attempt = lateReply();
  redis.evalSha.mockReturnValueOnce(attempt.promise);
  const [first, next] = [semaphore.lock(), semaphore.lock(options)];
  await time.advance(1);
  await before.unlock();
  await first;
  return { attempt, next };
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

it.each<LockOptions>([{ minHold: 1_000 }, { ttl: 5_000 }])(
  'An attempt in flight does not go on to a caller that asks for %p, which makes one of its own',
  async (options) => {
    const { next } = await handOn(options);
    await time.advance(1);
    expect(new Set(owners()).size).toBe(3);
    (await next).assertHeld();
  },
);

it('A lease of an attempt that went on to another caller is released by one command', async () => {
  const { attempt, next } = await handOn({});
  const owner = owners().at(-1);
  attempt.resolve(sharedGranted);
  redis.evalSha.mockResolvedValue(sharedReleased);
  await (await next).unlock();
  await time.advance(120_000);
  expect(owners().filter((one) => one === owner)).toHaveLength(2);
});

it('A caller does not get the hold of one that had fewer permits', async () => {
  redis.evalSha.mockResolvedValue([0, 0, 2]);
  const of = createRegistry(redis).registry.semaphore('key', { permits: 2 });
  const before = await of.lock();
  redis.evalSha.mockImplementation(silence);
  let isGranted = false;
  const locking = of.lock({ permits: 2 }).then(() => (isGranted = true));
  locking.catch(() => undefined);
  await time.advance(1);
  void before.unlock().catch(() => undefined);
  await time.advance(10);
  expect(isGranted).toBe(false);
});
