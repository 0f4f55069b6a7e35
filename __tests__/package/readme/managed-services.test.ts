import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CannotAcquireLockError, RedisLockRegistry } from '../../../lib';
import { LOCK_TYPES } from '../../../lib/api/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { untilQuiet } from '../../support/server-load';
import { isSince } from '../../support/since';
import { Contention, KEY, REGISTRY_KEY } from './contention';
import { codeSpans, tableBelow } from './pages';

/** The commands that each service forbids, read in November 2026 on the page that docs/redis.md links to. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  'Amazon ElastiCache, node-based': 'bgrewriteaof bgsave config debug migrate replicaof save slaveof shutdown sync',
  'Amazon ElastiCache Serverless': 'bgrewriteaof bgsave config debug migrate replicaof save slaveof shutdown sync',
  'Amazon MemoryDB':
    'acl|deluser acl|load acl|save acl|setuser bgrewriteaof bgsave config debug migrate module psync replicaof save shutdown slaveof sync',
  'Google Memorystore for Redis, for Valkey':
    'acl bgrewriteaof bgsave cluster command config debug lastsave migrate monitor object replicaof save shutdown',
  'Azure Managed Redis': 'cluster config debug migrate replicaof save shutdown slaveof',
  'Redis Cloud': 'asking cluster debug migrate replicaof save shutdown',
  'Aiven for Valkey':
    'acl bgrewriteaof bgsave cluster command config debug failover lastsave migrate monitor replicaof save shutdown slaveof',
  'Oracle OCI Cache, non-sharded':
    'acl bgrewriteaof bgsave cluster config|set debug migrate module psync replicaof save shutdown sync',
  'Oracle OCI Cache, sharded': 'eval evalsha function script',
  'Alibaba Cloud Tair, cluster': '',
  'Huawei Cloud DCS, Proxy Cluster of Redis 3.0': '',
  Upstash: '',
};

const SERVICES = tableBelow('docs/redis.md', 'Managed Redis', 'service').map(([name = '', works = '']) => {
  const service = name.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return { service, forbidden: FORBIDDEN[service]?.split(' ').filter(Boolean) ?? [], works: works === 'yes' };
});

describePrivate('docs/redis.md', () => {
  const redis = PrivateRedis.install();
  let contention: Contention | undefined;
  let users = 0;

  beforeEach(async () => {
    await redis.admin.flushAll();
    await redis.admin.scriptFlush();
  });

  afterEach(async () => {
    await contention?.close();
    contention = undefined;
  });

  /** A user that may do everything but this. Commands that this server does not have need not be forbidden. */
  async function userWithout(commands: readonly string[]): Promise<{ username: string; password: string }> {
    const username = `user-${users++}`;
    const known = ((await redis.admin.sendCommand(['COMMAND'])) as unknown as [name: string][]).map(([name]) => name);
    const containerOf = (name: string) => name.split('|')[0] as string;
    // A server before 7 can forbid a command as a whole only.
    const names = commands.map((name) => (isSince('7.0') ? name : containerOf(name)));
    const rules = names.filter((name) => known.includes(containerOf(name))).map((name) => `-${name}`);
    await redis.admin.sendCommand(['ACL', 'SETUSER', username, 'on', '>secret', '~*', '&*', '+@all', ...rules]);
    return { username, password: 'secret' };
  }

  async function expectRefused(commands: readonly string[]): Promise<void> {
    const client = await redis.connect(await userWithout(commands));
    const registry = new RedisLockRegistry(client, { registryKey: REGISTRY_KEY, commandTimeout: 500 });
    await expect(registry.obtain(KEY).lock()).rejects.toThrow(CannotAcquireLockError);
    await registry.close();
    client.destroy();
  }

  it('docs/redis.md names services', () => {
    expect(SERVICES.map(({ service }) => service)).toEqual(Object.keys(FORBIDDEN));
    expect(SERVICES.length).toBeGreaterThan(8);
    expect(SERVICES.filter(({ works }) => !works)).toHaveLength(1);
  });

  it.each(LOCK_TYPES)('docs/redis.md says that every lock type works on each of them: %s', async (lockType) => {
    const forbidden = SERVICES.flatMap((service) => (service.works ? service.forbidden : []));
    contention = new Contention(redis, lockType, true, await userWithout(forbidden));
    await contention.run();
    expect(contention.warnings).toEqual([]);
  });

  it.each(SERVICES.filter(({ works }) => !works))(
    'docs/redis.md says that nothing works on $service',
    ({ forbidden }) => expectRefused(forbidden),
  );

  describe('says what happens without', () => {
    const ROWS = tableBelow('docs/redis.md', 'Managed Redis', 'without');
    const warningsWithout = async (...commands: string[]): Promise<string[]> => {
      contention = new Contention(redis, 'pub-sub', false, await userWithout(commands));
      const registry = await contention.registry();
      const other = await contention.registry();
      const lease = await registry.obtain(KEY).lock();
      const waiting = other.run(KEY, () => 'served');
      // It has found the lock taken, and failed to subscribe, or waits.
      await untilQuiet(redis.admin);
      await lease.unlock();
      expect(await waiting).toBe('served');
      return [...new Set(contention.warnings.map(({ code }) => code))];
    };

    it('EVAL, EVALSHA: calls reject at once', () => expectRefused(['eval', 'evalsha']));

    it('PUBLISH: NOTIFICATION_REFUSED', async () => {
      expect(await warningsWithout('publish')).toEqual(['NOTIFICATION_REFUSED']);
    });

    it('SUBSCRIBE: SUBSCRIBER_UNAVAILABLE', async () => {
      expect(await warningsWithout('subscribe')).toEqual(['SUBSCRIBER_UNAVAILABLE']);
    });

    it.each(ROWS.slice(3).map(([cell = '']) => [codeSpans(cell).map((name) => name.toLowerCase())]))(
      '%s: locks work, without a warning',
      async (commands) => {
        expect(await warningsWithout(...commands)).toEqual([]);
      },
    );
  });
});
