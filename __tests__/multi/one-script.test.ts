import { expect, it } from '@jest/globals';
import type { LockType, RedisLockRegistry } from '../../lib';
import { ACQUIRE as FAIR_ACQUIRE } from '../../lib/kinds/fair/scripts';
import { SPRING_SCRIPTS } from '../../lib/kinds/spring/kind';
import type { LockScript } from '../../lib/redis/script';
import { startCluster } from '../support/cluster';
import { describePrivate, installed, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const ACQUIRE: readonly (readonly [LockType, LockScript])[] = [
  ['spin', SPRING_SCRIPTS.ACQUIRE],
  ['pub-sub', SPRING_SCRIPTS.ACQUIRE],
  ['fair', FAIR_ACQUIRE],
];

/** From then on its calls for several keys are one script each, by its digest. */
async function learnsWhereKeysAre(registry: RedisLockRegistry, prefix = ''): Promise<void> {
  const many = registry.multi(Array.from({ length: 25 }, (_, i) => `${prefix}other ${i}`));
  for (let i = 0; i < 2; i++) await many.run(() => undefined);
}

/** ms; far longer than the tests take. */
const TTL = 300_000;

describePrivate('A lock of several keys in one slot of a cluster', () => {
  const cluster = installed(() => startCluster());

  it.each(ACQUIRE)(
    'A lock of several keys of one slot is asked for by one script, which touches none while one is taken: %s',
    async (lockType) => {
      const registryKey = uniqueKey('slot');
      const tag = uniqueKey('tag');
      const options = { registryKey, lockType, fencing: true };
      const { registry, nameOf } = createRegistry(await cluster().connect(), options);
      const { registry: other } = createRegistry(await cluster().connect(), options);
      const keys = ['a', 'b', 'c'].map((key) => `{${tag}}:${key}`);
      const [first = '', taken = '', last = ''] = keys;
      const { master } = await cluster().ownersOf(nameOf(first));
      await learnsWhereKeysAre(registry, `{${tag}}:`);
      const multi = registry.multi(keys);
      const held = await other.obtain(taken).lock();
      const scripts = async () =>
        Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await master.send('INFO', 'commandstats')))?.[1]);
      const before = await scripts();
      expect(await multi.tryLock()).toBeNull();
      expect((await scripts()) - before).toBe(1);
      const waiting = multi.lock({ waitTime: 60_000 });
      await until(() => registry.obtain(taken).passing.waiting > 0);
      // Their counters of fencing tokens would be there.
      const found = (await master.send('KEYS', `*${tag}*`)) as string[];
      expect(found.filter((name) => [first, last].some((key) => name.includes(key)))).toEqual([]);
      await held.unlock();
      const lease = await waiting;
      expect([...lease.fencingTokens.keys()].sort()).toEqual(keys);
      await lease.unlock();
      for (const key of keys) expect((await other.obtain(key).inspect()).held).toBe(false);
    },
  );
});

describePrivate('A lock of several keys whose reply is lost', () => {
  const redis = PrivateRedis.install();

  it.each(ACQUIRE)(
    'A call for several keys that gives up after a lost reply leaves none of them taken: %s',
    async (lockType, { allOrNone }) => {
      const cut = await createProxiedRegistry(redis, { lockType, expireAfter: TTL });
      const { registry, registryKey, commands, nameOf } = cut;
      const keys = ['a', 'b', 'c'];
      await learnsWhereKeysAre(registry);
      const abort = new AbortController();
      const lost = commands.loseReply(allOrNone.sha1);
      const call = registry.multi(keys).lock({ signal: abort.signal });
      const end = call.then(
        () => 'granted',
        () => 'gave up',
      );
      await lost;
      // What the lost reply would have granted is there.
      expect(await redis.admin.exists(keys.map(nameOf))).toBe(3);
      abort.abort();
      expect(await end).toBe('gave up');
      await until(async () => (await redis.admin.exists(keys.map(nameOf))) === 0);
      const { registry: other } = createRegistry(await redis.connect(), {
        lockType,
        registryKey,
      });
      // An attempt that lay in the client's queue when its caller left may be executed now. It is removed, too.
      const lease = await other.multi(keys).lock({ waitTime: 10_000 });
      await lease.unlock();
    },
  );
});
