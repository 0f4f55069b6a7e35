import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import { compiled } from '../support/compiled';
import { describeReal, realRedis, uniqueKey } from '../support/redis';
import type { StorageQuestion, StorageReport } from './storage-use';

describeReal('AsyncLocalStorage', () => {
  let child: ChildProcess | undefined;
  afterEach(() => {
    child?.kill('SIGKILL');
  });

  it.each(LOCK_TYPES)(
    'is not used by a %s lock before the first run, and one instance serves all runs',
    async (lockType) => {
      // In its own process, because the effect of the first run is permanent.
      child = fork(compiled(join(__dirname, 'storage-use.ts')), {
        execArgv: [],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      const question: StorageQuestion = { lockType, redis: realRedis, registryKey: uniqueKey('registry') };
      child.send(question);
      const [report] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [StorageReport];
      expect(report.afterLocks).toEqual({ made: 0, called: 0 });
      expect(report.afterFirstRun.made).toBe(1);
      expect(report.afterFirstRun.called).toBeGreaterThan(0);
      expect(report.afterSecondRun.made).toBe(1);
    },
  );
});
