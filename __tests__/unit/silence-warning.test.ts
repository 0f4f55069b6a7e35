import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type LockWarning, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { type InUse, SilenceWarning } from '../../lib/core/silence-warning';
import { clock } from '../../lib/internal/clock';
import type { Connection } from '../../lib/redis/connection';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, silence } from '../support/mock-redis';

let registry: RedisLockRegistry;

// Before the clock is restored.
afterEach(async () => {
  const closing = registry.close({ timeout: 0 });
  await time.advance(10_000);
  await closing;
});

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let warnings: LockWarning[];
/** Answers what was sent in the silence. */
let answers: (() => void)[];

beforeEach(() => {
  redis = mockRedis();
  answers = [];
});

function open(options: Partial<RedisLockRegistryOptions> = {}): void {
  warnings = [];
  const onWarning = (warning: LockWarning) => void warnings.push(warning);
  registry = new RedisLockRegistry(redis, { registryKey: 'silent', warnAfter: Infinity, onWarning, ...options });
}

function goSilent(): void {
  redis.evalSha.mockImplementation(() => new Promise((resolve) => answers.push(() => resolve(1))));
}

async function comeBack(): Promise<void> {
  redis.evalSha.mockImplementation(async () => 1);
  for (const answer of answers.splice(0)) answer();
  await time.advance(1_000);
}

it('A client that rejects each command at once is quoted in the warning of a silence, until Redis has answered', async () => {
  open();
  redis.evalSha.mockRejectedValue(new Error('The queue is full'));
  const waiting = callers('a');
  await time.advance(4_000);
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringMatching(
      /^Redis has not answered for 3\.\d s: .* The last error of the client was: The queue is full$/,
    ),
  ]);
  expect(warnings[0]).toMatchObject({ code: 'REDIS_SILENT', cause: { message: 'The queue is full' } });
  await comeBack();
  goSilent();
  const again = callers('b');
  await time.advance(4_000);
  expect(warnings.at(-1)?.message).not.toContain('The queue is full');
  await comeBack();
  await Promise.all([...waiting, ...again]);
});

const codes = () => warnings.map(({ code }) => code);

/** The owner value of a lock of another process. */
const OTHER = 'web-7:1:h0pCmsO5S7mSQpHDOZJ1Sw:5';

/** Calls that wait, and may fail. */
const callers = (...keys: string[]) =>
  keys.map((key) => registry.run(key, () => 'entered').catch((error: Error) => error.name));

it('A silence is not warned of where an answer is read in the second turn of the event loop, and no more once the registry is closed', async () => {
  open();
  goSilent();
  const waiting = callers('a');
  await time.advance(2_900);
  const { immediate } = clock;
  let turns = 0;
  clock.immediate = async () => {
    await immediate();
    if (++turns === 2) for (const answer of answers.splice(0)) answer();
  };
  await time.advance(200);
  expect(warnings).toEqual([]);
  waiting.push(...callers('b'));
  await time.advance(3_200);
  expect(codes()).toEqual(['REDIS_SILENT']);
  const closing = registry.close({ timeout: 0 });
  await time.advance(10_000);
  await Promise.all([closing, ...waiting]);
  expect([warnings.length, time.pending]).toEqual([1, 0]);
});

it('A silence is warned of once after 3 s in which callers wait, with what it affects; and once when Redis is back', async () => {
  open();
  for (const ttl of [60_000, 30_000]) await registry.obtain(`held ${ttl}`).lock({ ttl });
  await time.advance(1_000);
  goSilent();
  const waiting = callers('a', 'b', 'b');
  await time.advance(2_900);
  expect(warnings).toEqual([]);
  await time.advance(200);
  expect(codes()).toEqual(['REDIS_SILENT']);
  const [{ silence: said, message } = {} as LockWarning] = warnings;
  expect(said).toMatchObject({ leases: 2, waiters: 3, isOver: false });
  expect(said?.duration).toBeGreaterThanOrEqual(3_000);
  expect(said?.firstLeaseEndsIn).toBeGreaterThan(25_000);
  expect(said?.firstLeaseEndsIn).toBeLessThan(26_000);
  expect(message).toMatch(/not answered for 3\.\d s: .*2 leases and 3 waiting callers; .*lease ends in 2[56]\.\d s/);
  await time.advance(5_000);
  expect(warnings).toHaveLength(1);
  await comeBack();
  expect(codes()).toEqual(['REDIS_SILENT', 'REDIS_SILENT']);
  expect(warnings[1]?.silence).toMatchObject({ waiters: 0, isOver: true });
  expect(warnings[1]?.message).toMatch(/answers again, [89]\.\d s after the first request/);
  expect(await Promise.all(waiting)).toEqual(['entered', 'entered', 'entered']);
  goSilent();
  void callers('c');
  await time.advance(3_200);
  expect(warnings).toHaveLength(3);
});

it('A silence is warned of with nothing of a lease, or of an error, where there is none', async () => {
  open();
  goSilent();
  void callers('a');
  await time.advance(3_100);
  expect(warnings[0]?.message).toMatch(/: this affects 0 leases and 1 waiting caller$/);
  expect(warnings[0]).not.toHaveProperty('cause');
});

it('A silence is warned of when a lease could not be renewed for a third of its ttl, though nobody waits', async () => {
  open({ expireAfter: 15_000 });
  const leases = await Promise.all(['a', 'b'].map((key) => registry.obtain(key).lock()));
  goSilent();
  await time.advance(9_900);
  expect(warnings).toEqual([]);
  await time.advance(200);
  expect(codes()).toEqual(['REDIS_SILENT']);
  expect(warnings[0]?.silence).toMatchObject({ leases: 2, waiters: 0, isOver: false });
  expect(warnings[0]?.silence?.firstLeaseEndsIn).toBeGreaterThan(4_500);
  await comeBack();
  expect(warnings.map(({ silence: said }) => said?.isOver)).toEqual([false, true]);
  expect(leases.every(({ signal }) => !signal.aborted)).toBe(true);
});

it('A silence does not affect a lease that was unlocked, though Redis has not answered its release', async () => {
  open({ expireAfter: 15_000, commandTimeout: 20_000 });
  const [lease] = await Promise.all(['a', 'b'].map((key) => registry.obtain(key).lock()));
  goSilent();
  await time.advance(9_000);
  const unlocking = lease?.unlock();
  await time.advance(1_200);
  expect(codes()).toEqual(['REDIS_SILENT']);
  expect(warnings[0]?.silence).toMatchObject({ leases: 1, isOver: false });
  expect(warnings[0]?.silence?.firstLeaseEndsIn).toBeGreaterThan(4_500);
  await comeBack();
  await unlocking;
});

it('Renewals that Redis answers with errors are warned of like a silence, and the warning says so', async () => {
  open({ expireAfter: 15_000 });
  await registry.obtain('key').lock();
  redis.evalSha.mockRejectedValue(new Error('LOADING Redis is loading the dataset in memory'));
  await time.advance(9_900);
  expect(warnings).toEqual([]);
  await time.advance(2_000);
  expect(codes()).toEqual(['REDIS_SILENT']);
  expect(warnings[0]?.message).toMatch(/confirmed no renewal for 1\d\.\d s: .*1 lease and 0 waiting callers/);
});

it('Renewals that fail are warned of with all leases that are affected, also those that were not due yet, and the answer', async () => {
  open({ expireAfter: 15_000 });
  await registry.obtain('first').lock();
  await time.advance(4_000);
  for (const key of ['b', 'c', 'd']) await registry.obtain(key).lock({ ttl: 60_000, renew: true });
  const down = new Error('CLUSTERDOWN The cluster is down');
  redis.evalSha.mockRejectedValue(down);
  await time.advance(8_000);
  expect(codes()).toEqual(['REDIS_SILENT']);
  expect(warnings[0]?.silence?.leases).toBe(4);
  expect(warnings[0]?.message).toMatch(/. Its last answer was: CLUSTERDOWN The cluster is down$/);
  expect(warnings[0]?.cause).toBe(down);
});

it('No silence is warned of after a block of the event loop, where the answers only have to be read', async () => {
  open();
  redis.evalSha.mockImplementation(() => new Promise((resolve) => answers.push(() => resolve([60_000, 'another:1']))));
  void callers('key');
  const { immediate } = clock;
  clock.immediate = () => {
    for (const answer of answers.splice(0)) answer();
    return immediate();
  };
  await time.advance(4_000);
  expect(warnings).toEqual([]);
});

it('No silence is warned of by a registry that is closed, which leaves no timer behind', async () => {
  open();
  goSilent();
  void callers('key');
  await time.advance(2_900);
  const closing = registry.close({ timeout: 0 });
  await time.advance(10_000);
  await closing;
  expect(warnings).toEqual([]);
  expect(time.pending).toBe(0);
});

it('A wait that is long is warned of in time while Redis is silent, with the holder by the last answer', async () => {
  open({ warnAfter: 2_000 });
  redis.evalSha.mockImplementationOnce(async () => [60_000, OTHER]);
  redis.evalSha.mockImplementation(silence);
  void callers('key');
  await time.advance(2_200);
  expect(codes()).toEqual(['LONG_WAIT']);
  expect(warnings[0]?.holder).toMatchObject({ owner: OTHER, isThisProcess: false });
  expect(warnings[0]?.holder?.remaining).toBeLessThan(58_500);
  expect(warnings[0]?.message).toMatch(/for 2 s: .* holds it by the last answer .*Redis has not answered for 2 s/);
});

it('A silence is that of the servers which were asked, from the first request on, and over when all of them answer', async () => {
  open();
  warnings = [];
  const since: Record<string, number> = { a: -1_500, b: -2_000, short: 751 };
  const connection = { unansweredSince: (name: string) => since[name], lastError: new Error('refused') };
  const lock = (name: string, remaining: number) => {
    const hold = { ttl: 60_000, until: time.now + 60_000, sentAt: time.now, mayRenewAt: () => true };
    return { names: { lock: name }, leases: [{ remaining, hold }] };
  };
  let inUse = {
    locks: [lock('b', 9_000), lock('a', 7_000), lock('short', 1), lock('answers', 1)],
    awaited: ['a', 'b', 'b', 'short', 'answers'],
  };
  let looks = 0;
  const count = () => {
    looks++;
    return inUse as unknown as InUse;
  };
  const silent = new SilenceWarning(
    connection as unknown as Connection,
    count,
    (one) => void warnings.push(one),
    () => undefined,
  );
  silent.notice();
  await time.advance(0);
  expect(warnings).toEqual([
    {
      code: 'REDIS_SILENT',
      message:
        'Redis has not answered for 3.0 s: this affects 2 leases and 3 waiting callers; the first lease ends in 7.0 s. The last error of the client was: refused',
      silence: { leases: 2, waiters: 3, firstLeaseEndsIn: 7_000, duration: 3_000, isOver: false },
      cause: connection.lastError,
    },
  ]);
  expect(time.keepingAlive).toBe(0);
  inUse = { locks: [], awaited: ['a'] };
  delete since.b;
  await time.advance(600);
  inUse = { locks: [], awaited: [] };
  since.b = time.now;
  await time.advance(1_000);
  expect([warnings.length, looks]).toEqual([1, 4]);
  delete since.b;
  await time.advance(500);
  expect(warnings[1]).toMatchObject({ message: expect.stringMatching(/answers again, 5\.\d s .* not answer$/) });
  expect(warnings[1]).not.toHaveProperty('cause');
});
