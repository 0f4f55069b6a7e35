import { expect, it } from '@jest/globals';
import { redis6Client } from '../support/client-kinds';
import { DISTINCT_TYPES, LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { callsOf } from '../support/server-load';
import { createRegistry } from '../support/test-registry';
import { multiContract } from './multi-contract';

for (const lockType of DISTINCT_TYPES) multiContract(lockType, redis6Client);

describePrivate('A free lock of several keys', () => {
  const redis = PrivateRedis.install();

  it.each(LOCK_TYPES)('costs one command, and one to give it back: %s', async (lockType) => {
    const { registry } = createRegistry(await redis.connect(), { lockType });
    // Releases of many keys show that all keys are on one server, and load the scripts.
    const many = registry.multi(Array.from({ length: 25 }, (_, i) => `key ${i}`));
    for (let i = 0; i < 2; i++) await many.run(() => undefined);
    const commands = () => callsOf(redis.admin, 'evalsha');
    const before = await commands();
    const lease = await registry.multi(['a', 'b', 'c', 'd']).lock();
    expect((await commands()) - before).toBe(1);
    await lease.unlock();
    expect((await commands()) - before).toBe(2);
  });
});
