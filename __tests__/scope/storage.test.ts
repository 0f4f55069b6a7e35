import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { RedisClientOptions } from 'redis';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import { describeReal, realRedis, uniqueKey } from '../support/redis';
import { WorkerProcess } from '../support/worker-process';
import type { StorageQuestion, StorageReport } from './storage-use';

describeReal('AsyncLocalStorage', () => {
  it.each(LOCK_TYPES)(
    'is not used by a %s lock before the first run, and one instance serves all runs',
    async (lockType) => {
      // In its own process, because the effect of the first run is permanent.
      const child = await WorkerProcess.start<StorageQuestion, StorageReport>(join(__dirname, 'storage-use.ts'));
      await child.begin({ lockType, redis: realRedis as RedisClientOptions, registryKey: uniqueKey('registry') });
      const { afterLocks, afterFirstRun, afterSecondRun } = await child.next('done');
      expect(afterLocks).toEqual({ made: 0, called: 0 });
      expect(afterFirstRun.made).toBe(1);
      expect(afterFirstRun.called).toBeGreaterThan(0);
      expect(afterSecondRun.made).toBe(1);
    },
  );
});
