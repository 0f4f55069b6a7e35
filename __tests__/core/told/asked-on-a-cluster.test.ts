import { it } from '@jest/globals';
import { startCluster } from '../../support/cluster';
import { describePrivate, installed } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

describePrivate('On a cluster, which does not count who hears a message,', () => {
  const servers = installed(() => startCluster());

  it.each(['read', 'write', 'semaphore'] as const)(
    'the holder of a lock of kind %s is asked, whatever other locks of the key it has',
    async (kind) => {
      const options = { registryKey: uniqueKey('asked'), lockType: 'spin', inbox: true } as const;
      const lockOf = async () => {
        const { registry } = createRegistry(await servers().connect(), options);
        registry.obtain('key');
        return kind === 'semaphore' ? registry.semaphore('key', { permits: 2 }) : registry.readWrite('key')[kind];
      };
      const lease = await (await lockOf()).lock();
      const theirs = await lockOf();
      await until(() => theirs.ask('please'));
      await until(() => lease.asked.aborted);
    },
  );
});
