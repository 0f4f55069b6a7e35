import { join } from 'node:path';
import { realRedis } from '../../support/redis';
import { WorkerProcess } from '../../support/worker-process';
import type { Job, Report } from './worker';

/** A worker process that uses locks of any type. */
export type LockWorker = WorkerProcess<Job, Report>;

export const startWorkers = (size: number): Promise<LockWorker[]> =>
  Promise.all(Array.from({ length: size }, () => WorkerProcess.start<Job, Report>(join(__dirname, 'worker.ts'))));

/** Resolves when all have finished the job. */
export async function runIn(workers: readonly LockWorker[], job: Omit<Job, 'redis'> & Partial<Job>): Promise<void> {
  await Promise.all(workers.map((worker) => worker.begin({ redis: realRedis, ...job } as Job)));
  await Promise.all(workers.map((worker) => worker.next('done')));
}
