import { expect, it } from '@jest/globals';
import { startCluster } from '../support/cluster';
import { describePrivate, installed } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';

describePrivate('Once on a cluster', () => {
  const servers = installed(() => startCluster());

  it.each(['spin', 'fair', 'redisson'] as const)(
    'Tasks of once on a cluster run once each, and their results are in the slots of their locks of type %s',
    async (lockType) => {
      const options = { registryKey: uniqueKey('once'), lockType };
      const registries = [1, 2].map(async () => createRegistry(await servers().connect(), options).registry);
      const runs: string[] = [];
      const keys = ['a', 'b', 'c', '{tag}:d'];
      const calls = [...registries, ...registries].flatMap((registry) =>
        keys.map(async (key) => {
          const task = () => {
            runs.push(key);
            return `result of ${key}`;
          };
          return [key, await (await registry).once(key, task, { keepFor: 60_000 })];
        }),
      );
      for (const [key, result] of await Promise.all(calls)) expect(result).toBe(`result of ${key}`);
      expect(runs.sort()).toEqual([...keys].sort());
    },
  );
});
