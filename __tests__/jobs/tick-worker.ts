/** A machine on which cron starts a job: it tries to run the job at each message. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../lib';
import type { LockType } from '../../lib/protocols/lock-types';

export interface TickJob {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
  /** ms */
  readonly minHold: number;
}

export interface Attempt {
  readonly ran: boolean;
  /** ms, before its request was sent, and when the job began or was refused. */
  readonly from: number;
  readonly to: number;
}

export type TickReport =
  | { readonly state: 'ready' | 'working' }
  | { readonly state: 'tried'; readonly attempt: Attempt };

/** ms that the job takes. */
const JOB = 5;

/** ms, on the monotonic clock that all processes share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

async function work({ redis, registryKey, lockType, minHold }: TickJob): Promise<void> {
  const client = createClient(redis);
  await client.connect();
  const registry = new RedisLockRegistry(client, { registryKey, lockType });
  const tick = async (): Promise<void> => {
    const from = now();
    let to: number | undefined;
    const { ran } = await registry.tryRun(
      'job',
      async () => {
        to = now();
        await sleep(JOB);
      },
      { minHold },
    );
    process.send?.({ state: 'tried', attempt: { ran, from, to: to ?? now() } });
  };
  process.on('message', () => void tick());
  process.send?.({ state: 'working' });
}

process.on('disconnect', () => process.exit(1));
process.once('message', (job: TickJob) => void work(job));
process.send?.({ state: 'ready' });
