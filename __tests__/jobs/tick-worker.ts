/** A machine on which cron starts a job: it tries to run the job at each message. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../lib';
import type { LockType } from '../../lib/protocols/lock-types';
import { connect, report, serve } from '../support/serve';

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

export type TickReport = { readonly state: 'set up' } | { readonly state: 'tried'; readonly attempt: Attempt };

/** ms that the job takes. */
const JOB = 5;

/** ms, on the monotonic clock that all processes share. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

let tick: (() => Promise<void>) | undefined;

async function setUp({ redis, registryKey, lockType, minHold }: TickJob): Promise<void> {
  const registry = new RedisLockRegistry(await connect(redis), { registryKey, lockType });
  tick = async () => {
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
    report<TickReport>({ state: 'tried', attempt: { ran, from, to: to ?? now() } });
  };
  report<TickReport>({ state: 'set up' });
}

serve((job: TickJob | Record<string, never>) =>
  'redis' in job ? setUp(job as TickJob) : (tick as () => Promise<void>)(),
);
