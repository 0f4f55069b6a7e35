import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { LockType } from '../../../lib';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { createRealClient, describeReal, realRedis, uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';
import { WorkerProcess } from '../../support/worker-process';
import type { Job, Report } from './holder-worker';

/** ms; nobody waits for so long unless something is wrong. */
const LONG = 30_000;

describeReal('The process of a holder is stopped when its lock is taken', () => {
  /** The holder in a process of its own, and a registry that replaces it. */
  const open = async (lockType: LockType) => {
    const client = await createRealClient();
    const [registryKey, mark] = [uniqueKey('stopped'), uniqueKey('mark')];
    const holder = await WorkerProcess.start<Job, Report>(join(__dirname, 'holder-worker.ts'));
    await holder.begin({ redis: realRedis, registryKey, lockType, mark } as Job);
    const { id } = await holder.next('holds');
    await until(async () => (await client.pubSubChannels(`*@${id}*`)).length === 1);
    const { registry } = createRegistry(client, { registryKey, lockType, name: 'taker' });
    return { client, mark, holder, registry, hasEnded: async () => (await client.exists(mark)) === 1 };
  };

  it.each(TRAVELLING_TYPES)(
    'longer than the grace: the next holder of a %s lock begins, and the holder finds its loss',
    async (type) => {
      const { holder, registry, hasEnded } = await open(type);
      process.kill(holder.pid, 'SIGSTOP');
      const lease = await registry.obtain('key').lock({ replace: true, grace: 300 });
      expect(await hasEnded()).toBe(false);
      process.kill(holder.pid, 'SIGCONT');
      expect(await holder.next('lost')).toMatchObject({ reason: 'stolen', by: 'taker' });
      await lease.unlock();
    },
  );

  it.each(TRAVELLING_TYPES)(
    'for less than the grace: the next holder of a %s lock begins when the task has ended',
    async (type) => {
      const { holder, registry, hasEnded } = await open(type);
      process.kill(holder.pid, 'SIGSTOP');
      let hasEntered = false;
      const running = registry.run(
        'key',
        async () => {
          hasEntered = true;
          expect(await hasEnded()).toBe(true);
        },
        { replace: true, grace: LONG },
      );
      await until(async () => (await registry.obtain('key').inspect()).name === 'taker');
      expect(hasEntered).toBe(false);
      process.kill(holder.pid, 'SIGCONT');
      expect(await holder.next('lost')).toMatchObject({ reason: 'stolen', by: 'taker' });
      await running;
      expect(hasEntered).toBe(true);
    },
  );
});
