import { expect, it } from '@jest/globals';
import type { DistributedLock, RedisLockRegistry } from '../../lib';
import { CannotAcquireLockError } from '../../lib';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createProxiedRegistry } from '../support/proxied-registry';
import { uniqueKey } from '../support/redis';
import { until } from '../support/until';

const KINDS: readonly (readonly [string, (registry: RedisLockRegistry) => DistributedLock])[] = [
  ['a semaphore', (registry) => registry.semaphore('key', { permits: 1 })],
  ['a read/write lock', (registry) => registry.readWrite('key').write],
];

describePrivate('A caller of a shared lock behind another one of its process', () => {
  const redis = PrivateRedis.install();

  it.each(KINDS)(
    'A caller of a shared lock behind another one of its process finds that Redis is silent, and not that %s is held (P1)',
    async (_name, lockOf) => {
      const options = { registryKey: uniqueKey('shared'), idleBetweenTries: 20 };
      const holder = await createProxiedRegistry(redis, options);
      const waiter = await createProxiedRegistry(redis, options);
      const held = await lockOf(holder.registry).lock();
      const lock = lockOf(waiter.registry);
      const first = lock.lock();
      first.catch(() => undefined);
      const name = `{${options.registryKey}:key}:waiters`;
      await until(async () => (await redis.admin.exists(name)) === 1);
      const { requests } = waiter.commands;
      waiter.commands.blackHole = true;
      const before = requests.bytes;
      await until(() => requests.bytes > before); // the first caller polls, and is not answered
      await expect(lock.lock({ waitTime: 1_000 })).rejects.toThrow(CannotAcquireLockError);
      waiter.commands.blackHole = false;
      waiter.commands.reset();
      await held.unlock();
      await (await first).unlock();
      await Promise.all([holder.registry.close(), waiter.registry.close()]);
    },
  );
});
