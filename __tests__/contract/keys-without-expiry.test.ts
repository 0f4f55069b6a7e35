import { expect, it } from '@jest/globals';
import type { DistributedLock, EvalOptions, RedisClient, RedisLockRegistry, RedisLockRegistryOptions } from '../../lib';
import { REDISSON_SCRIPTS } from '../../lib/kinds/redisson/kind';
import { KEEP } from '../../lib/kinds/redisson-fair/scripts';
import { allScripts } from '../../support/all-scripts';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const NAMES = new Map(allScripts().map(({ source, name }) => [source, name]));

/** In Redisson's format these have none. */
const WITHOUT_EXPIRY = /^redisson_lock_(queue|timeout|token):/;

/** Of one run: none of its commands that set an expiry deletes its key, the nth does, or each does. */
const DELETING = ['nil', '1', '2', '3', '4', "'each'"];

/**
 * Before a script, in Lua. Before Redis 7.2, PEXPIRE and PEXPIREAT delete a key that ends while they run, as where the
 * machine stands still. Nothing is published: the messages would reach waiters.
 */
const interposed = (deleting: string) => `
local real, redis, deleting, expiries = redis, {}, ${deleting}, 0
for _, name in ipairs({ 'call', 'pcall' }) do
  redis[name] = function(...)
    local command, key = ...
    if string.find(command, 'PUBLISH', 1, true) then return 1 end
    if string.find(command, '^PEXPIRE') then
      expiries = expiries + 1
      if deleting == 'each' or deleting == expiries then return real.call('DEL', key) end
    end
    return real[name](...)
  end
end
redis.error_reply = real.error_reply
`;

/** Tries each script in a copy of the keys, once for each of DELETING, before it is run. */
class Trials {
  readonly faults: object[] = [];
  readonly scripts = new Set<string>();
  readonly #admin: TestClient;
  readonly #copies: TestClient;
  #last: Promise<unknown> = Promise.resolve();

  constructor(admin: TestClient, copies: TestClient) {
    this.#admin = admin;
    this.#copies = copies;
  }

  /** As of a process: it knows no digests, so that each script comes as text. */
  client(client: RedisClient): RedisClient {
    return {
      evalSha: () => Promise.reject(new Error('NOSCRIPT No matching script. Please use EVAL.')),
      eval: (source, options = {}) => {
        const ran = this.#last.then(async () => {
          for (const deleting of DELETING) await this.#try(source, options, deleting);
          return client.eval(source, options);
        });
        this.#last = ran.catch(() => undefined);
        return ran;
      },
    };
  }

  async #try(source: string, options: EvalOptions, deleting: string): Promise<void> {
    const script = NAMES.get(source) ?? source;
    const fault = (what: object) => this.faults.push({ script, deleting, ...what });
    await this.#copies.flushDb();
    for (const key of await this.#admin.keys('*')) await this.#admin.sendCommand(['COPY', key, key, 'DB', '1']);
    await this.#copies.eval(interposed(deleting) + source, options).catch((error: Error) => fault({ error }));
    for (const key of await this.#copies.keys('*')) {
      const hasExpiry = (await this.#copies.pTTL(key)) !== -1;
      if (!hasExpiry && !WITHOUT_EXPIRY.test(key)) fault({ key });
    }
    this.scripts.add(script);
  }
}

/** What all locks can do: with callers that wait, one that gives up, and one that comes while the lock is kept. */
async function useLocks(one: RedisLockRegistry, other: RedisLockRegistry, lockOf: LockOf): Promise<void> {
  const { mine, others } = { mine: lockOf(one), others: lockOf(other) };
  const use = async (lock: DistributedLock, minHold = 0) => (await lock.lock({ ttl: 20_000, minHold })).unlock();
  const held = await mine.lock({ ttl: 20_000 });
  await held.renew();
  await held.eval('return 1');
  const isOver = new AbortController();
  const leaving = others.lock({ signal: isOver.signal }).catch(() => undefined);
  await until(async () => (await mine.inspect()).waiting !== 0);
  isOver.abort();
  await leaving;
  const used = [use(mine), use(others, 300), use(mine)];
  await held.unlock();
  await Promise.all(used);
  await use(mine, 10_000);
  await mine.forceUnlock();
}

type LockOf = (registry: RedisLockRegistry) => DistributedLock;

describePrivate('Where PEXPIRE deletes a key that ends while it runs, no script makes a key without an expiry', () => {
  const redis = PrivateRedis.install();

  async function trial(options: Partial<RedisLockRegistryOptions>) {
    await redis.admin.flushDb();
    const trials = new Trials(redis.admin, await redis.connect({ database: 1 }));
    const registryKey = 'trial';
    const process = async () => {
      const subscriber = await redis.connect();
      const client = trials.client(await redis.connect());
      return createRegistry(client, { registryKey, subscriber, ...options }).registry;
    };
    return { trials, one: await process(), other: await process() };
  }

  it.each(LOCK_TYPES)('%s', async (lockType) => {
    const { trials, one, other } = await trial({ lockType, fencing: true });
    await useLocks(one, other, (registry) => registry.obtain('key'));
    expect(trials.faults).toEqual([]);
    expect([...trials.scripts].join()).toMatch(/keep|release/);
  });

  it.each(LOCK_TYPES)('%s, when it is left to pollers', async (lockType) => {
    const { trials, one, other } = await trial({ lockType, sharedWithPollers: true });
    const held = await one.obtain('key').lock({ ttl: 20_000 });
    const waiting = other.obtain('key').lock({ ttl: 20_000 });
    // A lock that has been busy for five pauses is left to pollers.
    const busy = performance.now();
    await until(() => performance.now() - busy > 900);
    await held.unlock();
    await (await waiting).unlock();
    expect(trials.faults).toEqual([]);
  });

  it.each([
    ['a semaphore', (registry) => registry.semaphore('key', { permits: 1 })],
    ['a writer', (registry) => registry.readWrite('key').write],
  ] satisfies [string, LockOf][])('%s', async (_name, lockOf) => {
    const { trials, one, other } = await trial({ fencing: true });
    await useLocks(one, other, lockOf);
    expect(trials.faults).toEqual([]);
    expect([...trials.scripts].join()).toMatch(/keep|release/);
  });
});

describePrivate('This server', () => {
  const redis = PrivateRedis.install();

  // Before Redis 7.2, one in some 20,000 loses its key: `npm run test:servers -- --contract`.
  it.each([REDISSON_SCRIPTS.KEEP, KEEP])(
    'This server keeps a lock for its last millisecond, and not for ever: $name',
    async (keep) => {
      const ttl = 8;
      const keys = keep === KEEP ? ['lock', 'queue', 'timeouts'] : ['lock'];
      const how = ['PUBLISH', 'channel', '1', String(ttl), String(ttl)];
      const args = keep === KEEP ? ['owner', '0', '0', ...how] : ['owner', ...how.slice(2), ...how.slice(0, 2)];
      const source = `local function run(KEYS, ARGV)
      ${keep.source}
    end
    local stuck = 0
    for i = 1, 20000 do
      redis.call('HSET', KEYS[1], ARGV[1], 1)
      redis.call('PEXPIRE', KEYS[1], ${ttl})
      run(KEYS, ARGV)
      if redis.call('PTTL', KEYS[1]) == -1 then stuck = stuck + 1 end
      redis.call('DEL', KEYS[1])
    end
    return stuck`;
      let stuck = 0;
      for (let i = 0; i < 10; i++) stuck += Number(await redis.admin.eval(source, { keys, arguments: args }));
      expect(stuck).toBe(0);
    },
  );
});
