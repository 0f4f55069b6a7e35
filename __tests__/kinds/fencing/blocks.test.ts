import { expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistryOptions } from '../../../lib';
import { REDISSON_SCRIPTS } from '../../../lib/kinds/redisson/kind';
import { ACQUIRE as FAIR_ACQUIRE } from '../../../lib/kinds/redisson-fair/scripts';
import { SPRING_SCRIPTS } from '../../../lib/kinds/spring/kind';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { scriptsRun } from '../../support/server-load';
import { createRegistry, lossOf } from '../../support/test-registry';

const CALLERS = 100;

/** Microseconds; a block ends no later after the server's time. */
const MOST_AHEAD = 1_000;

const rising = (tokens: readonly number[]) => tokens.every((token, i) => i === 0 || token > (tokens[i - 1] as number));

describePrivate.each(TRAVELLING_TYPES)('Tokens of a %s lock that goes from caller to caller', (lockType) => {
  const redis = PrivateRedis.install();

  async function fenced(options: Partial<RedisLockRegistryOptions> = {}) {
    const { registry, nameOf } = createRegistry(await redis.connect(), { lockType, fencing: true, ...options });
    const name = nameOf('key');
    const counter = lockType === 'redisson' ? `redisson_lock_token:{${name}}` : `{${name}}:fence`;
    // Of `fair`, so that messages reach the process: the first hand-over comes before it has subscribed.
    await Promise.all([registry.run('key', () => undefined), registry.run('key', () => undefined)]);
    return { lock: registry.obtain('key'), name, counter, last: async () => Number(await redis.admin.get(counter)) };
  }

  /** Callers that wait behind a lease, and the tokens so far. Half of them leave after so many of these. */
  async function queued(lock: Awaited<ReturnType<typeof fenced>>['lock'], callers = CALLERS, leaveAfter = 0) {
    const tokens: number[] = [];
    const leaving = new AbortController();
    const note = ({ fencingToken }: Lease) => {
      tokens.push(fencingToken as number);
      if (tokens.length === leaveAfter) leaving.abort();
    };
    const first = await lock.lock();
    note(first);
    const each = Array.from({ length: callers }, (_, i) =>
      lock.run(note, i % 2 === 0 ? { signal: leaving.signal } : {}).catch((reason: unknown) => reason),
    );
    return { tokens, first, served: Promise.all(each) };
  }

  async function takenByAnother(name: string, ttl: number): Promise<void> {
    const asHash = () => redis.admin.multi().del(name).hSet(name, 'another', 1).pExpire(name, ttl).exec();
    await (lockType === 'redisson' ? asHash() : redis.admin.set(name, 'another', { PX: ttl }));
  }

  it('Tokens of a lock that goes from caller to caller come in blocks, with nearly no requests', async () => {
    const { lock, last } = await fenced();
    const before = await last();
    const { tokens, first, served } = await queued(lock);
    const scripts = await scriptsRun(redis.admin);
    await first.unlock();
    await served;
    expect(tokens).toHaveLength(1 + CALLERS);
    expect(rising([before, ...tokens])).toBe(true);
    expect((await scriptsRun(redis.admin)) - scripts).toBeLessThan(CALLERS / 5);
    // In Redisson's counter no number is left over where nobody leaves.
    expect((await last()) - (tokens.at(-1) as number)).toBeLessThan(lockType === 'redisson' ? 1 : MOST_AHEAD);
  });

  it('Tokens of a lock that goes from caller to caller and that are left over when callers leave, or when it is lost, are never used', async () => {
    const { lock, name, last } = await fenced();
    const { tokens, first, served } = await queued(lock, CALLERS, 5);
    await first.unlock();
    await served;
    const lastOfBlock = await last();
    expect(tokens.length).toBeLessThan(0.6 * CALLERS);
    expect(lastOfBlock).toBeGreaterThanOrEqual(tokens.at(-1) as number);
    expect(await lock.run(({ fencingToken }) => fencingToken)).toBeGreaterThan(lastOfBlock);

    const lost = await queued(lock);
    await takenByAnother(name, 50);
    await lost.first.unlock().catch(() => undefined);
    await lost.served;
    expect(rising([...tokens, ...lost.tokens])).toBe(true);
  });

  it('Tokens of a lock that goes from caller to caller rise when the counter is lost meanwhile, or is ahead of the clock (P10)', async () => {
    if (lockType === 'redisson') return; // its counter is no time, and begins again
    const { lock, counter, last } = await fenced();
    const { tokens, first, served } = await queued(lock);
    await first.unlock();
    await redis.admin.del(counter);
    await served;
    await redis.admin.del(counter);
    await lock.run(({ fencingToken }) => tokens.push(fencingToken as number));
    expect(rising(tokens)).toBe(true);

    const ahead = (await last()) + 3_600_000_000; // an hour: the server's clock was set back
    await redis.admin.set(counter, String(ahead), { PX: 60_000 });
    const later = await queued(lock, 20);
    await later.first.unlock();
    await later.served;
    // One by one: a block would take the counter further ahead.
    expect(later.tokens).toEqual(later.tokens.map((_, i) => ahead + 1 + i));
    expect(await last()).toBe(later.tokens.at(-1));
  });

  it('Tokens of a lock that goes from caller to caller are taken only by its holder', async () => {
    const { lock, name, last } = await fenced();
    const { first, served } = await queued(lock, 10);
    const loss = lossOf(first);
    await takenByAnother(name, 60_000);
    const before = await last();
    await expect(first.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    await loss;
    expect(await last()).toBe(before);
    await redis.admin.del(name);
    await served;
  });
});

describePrivate('A block of tokens', () => {
  const redis = PrivateRedis.install();
  const ttl = '60000';

  async function confirm(name: string, last: string | undefined, callers: number): Promise<[number, number]> {
    await redis.admin.set(name, 'owner', { PX: 2 * Number(ttl) });
    if (last === undefined) await redis.admin.del(`{${name}}:fence`);
    else await redis.admin.set(`{${name}}:fence`, last);
    const options = { keys: [name, `{${name}}:fence`], arguments: ['owner', ttl, String(callers)] };
    const reply = await redis.admin.eval(SPRING_SCRIPTS.CONFIRM_OR_RELEASE.source, options);
    const [first = 0, count = 1] = String(reply).split(' ').map(Number);
    expect(await redis.admin.pTTL(name)).toBeGreaterThan(Number(ttl)); // not shortened
    expect(await redis.admin.get(`{${name}}:fence`)).toBe(String(first + count - 1));
    return [first, count];
  }

  const serverTime = async () => {
    const [seconds, microseconds] = (await redis.admin.sendCommand(['TIME'])) as unknown as [string, string];
    return Number(seconds) * 1e6 + Number(microseconds);
  };

  it('A block of tokens begins after the last token and no earlier than the time of the server, and ends soon after that', async () => {
    const before = await serverTime();
    for (const last of [undefined, '5', String(before - 1)]) {
      const [first, count] = await confirm('key', last, 7);
      expect(first).toBeGreaterThanOrEqual(before);
      expect(first).toBeLessThanOrEqual(await serverTime());
      expect(count).toBe(7);
    }
    expect((await confirm('key', undefined, 100_000))[1]).toBe(MOST_AHEAD);
    const ahead = before + 60_000_000;
    expect(await confirm('key', String(ahead), 100)).toEqual([ahead + 1, 1]);
  });

  it("A block of tokens in Redisson's format raises the counter as INCR does, once for each caller", async () => {
    const { admin } = redis;
    await admin.hSet('hash', 'owner', '1');
    const options = { keys: ['hash', 'counter'], arguments: ['owner', ttl, '5'] };
    const { source } = REDISSON_SCRIPTS.CONFIRM_OR_RELEASE;
    expect(await admin.eval(source, options)).toBe('1 5');
    expect(await admin.incr('counter')).toBe(6);
    expect(await admin.eval(source, { ...options, arguments: ['owner', ttl, '1'] })).toBe('7');
    expect(await admin.eval(source, options)).toBe('8 5');
    expect(await admin.pTTL('counter')).toBe(-1);
  });

  it.each([
    ['redisson', REDISSON_SCRIPTS.ACQUIRE, [], []],
    ['redisson-fair', FAIR_ACQUIRE, ['queue', 'timeouts'], ['300000', 'PUBLISH', 'channel', '1', 'owner']],
  ])(
    "A token in Redisson's format is in the counter, also where that is lost before an attempt is repeated: %s",
    async (_, script, more, args) => {
      const { admin } = redis;
      const options = { keys: ['hash', ...more, 'counter'], arguments: ['owner', ttl, ...args] };
      for (let i = 0; i < 2; i++) {
        await admin.del('counter');
        expect(await admin.eval(script.source, options)).toBe(1);
        expect(await admin.get('counter')).toBe('1');
      }
    },
  );
});
