import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { type ClusterServers, startCluster } from '../support/cluster';
import { describeReal, uniqueKey } from '../support/redis';

describeReal('Once on a cluster', () => {
  let servers: ClusterServers;
  const registries: RedisLockRegistry[] = [];

  beforeAll(async () => {
    servers = await startCluster();
  });

  afterEach(async () => {
    await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
  });

  afterAll(() => servers?.stop());

  it.each(['spin', 'fair', 'redisson'] as const)(
    'Tasks of once on a cluster run once each, and their results are in the slots of their locks of type %s',
    async (lockType) => {
      const registryKey = uniqueKey('once');
      for (let i = 0; i < 2; i++) {
        registries.push(new RedisLockRegistry(await servers.connect(), { registryKey, lockType }));
      }
      const runs: string[] = [];
      const keys = ['a', 'b', 'c', '{tag}:d'];
      const callers = registries.flatMap((registry) => keys.map((key) => ({ registry, key })));
      const call = ({ registry, key }: (typeof callers)[number]) =>
        registry.once(
          key,
          () => {
            runs.push(key);
            return `result of ${key}`;
          },
          { keepFor: 60_000 },
        );
      const results = await Promise.all([...callers, ...callers].map(call));
      expect(results).toEqual([...callers, ...callers].map(({ key }) => `result of ${key}`));
      expect(runs.sort()).toEqual([...keys].sort());
    },
  );
});
