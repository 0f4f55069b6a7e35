import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';

describePrivate('A caller of once whose wait ends, though nobody has the lock,', () => {
  const redis = PrivateRedis.install();
  const refused = { name: 'CannotAcquireLockError' };

  it('is told that too few replicas had the lock', async () => {
    const { registry } = createRegistry(await redis.connect(), { minReplicas: 1, replicaTimeout: 20 });
    const cause = { name: 'NotReplicatedError' };
    const call = registry.once('key', () => 'ran', { keepFor: 100, waitTime: 400 });
    await expect(call).rejects.toMatchObject({ ...refused, cause });
    await registry.close();
    expect(await redis.admin.keys('*')).toEqual([]);
  });

  it('is told what Redis has answered', async () => {
    const { registry } = createRegistry(await redis.connect());
    await redis.admin.configSet('min-replicas-to-write', '1');
    try {
      const call = registry.once('key', () => 'ran', { keepFor: 100, waitTime: 400 });
      const cause = { message: expect.stringContaining('NOREPLICAS') };
      await expect(call).rejects.toMatchObject({ ...refused, cause });
    } finally {
      await redis.admin.configSet('min-replicas-to-write', '0');
    }
  });
});
