import { beforeEach, expect, it } from '@jest/globals';
import type { DistributedLock, RedisLockRegistry } from '../../../lib';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { coded } from '../../support/since';
import { createRegistry } from '../../support/test-registry';

const KINDS: [string, (registry: RedisLockRegistry) => DistributedLock][] = [
  ['semaphore', (registry) => registry.semaphore('key', { permits: 1 })],
  ['read', (registry) => registry.readWrite('key').read],
  ['write', (registry) => registry.readWrite('key').write],
];

describePrivate.each(KINDS)('Redis refuses calls about a shared lock: %s', (kind, lockOf) => {
  const redis = PrivateRedis.install();
  let lock: DistributedLock;
  let other: DistributedLock;
  let registryKey: string;

  beforeEach(async () => {
    const mine = createRegistry(redis.admin);
    ({ registryKey } = mine);
    lock = lockOf(mine.registry);
    other = lockOf(createRegistry(await redis.connect(), { registryKey }).registry);
  });

  it('P1 P7: without memory, nothing of a shared lock is granted, and a holder renews and gives it back', async () => {
    const lease = await lock.lock({ ttl: 60_000 });
    await redis.admin.configSet('maxmemory', '1');
    try {
      await lease.renew(90_000);
      expect(await redis.admin.pTTL(`${registryKey}:key`)).toBeGreaterThan(60_000);
      await lease.unlock();
      // Leases that have ended are removed before: that is a write.
      await redis.admin.configSet('maxmemory', '0');
      await redis.admin.zAdd(`${registryKey}:key`, { score: 1, value: `${kind}:ended:1` });
      await redis.admin.configSet('maxmemory', '1');
      await expect(other.tryLock()).rejects.toThrow('OOM');
    } finally {
      await redis.admin.configSet('maxmemory', '0');
    }
  });

  it('P6: a replica that is behind says nothing of a lease of a shared lock', async () => {
    const lease = await lock.lock({ ttl: 60_000 });
    await redis.admin.del(`${registryKey}:key`);
    await redis.admin.replicaOf('127.0.0.1', 1);
    try {
      await expect(lease.renew()).rejects.toMatchObject({
        cause: { message: expect.stringMatching(`^${coded('READONLY')}`) },
      });
      await expect(lease.eval('return 1')).rejects.toThrow('READONLY');
      lease.assertHeld();
    } finally {
      await redis.admin.sendCommand(['REPLICAOF', 'NO', 'ONE']);
    }
  });
});
