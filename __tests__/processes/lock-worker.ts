import { join } from 'node:path';
import { realRedis } from '../support/redis';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** A worker process that uses locks of any type. */
export type LockWorker = WorkerProcess<Job, Report>;

export const startWorkers = (size: number): Promise<LockWorker[]> =>
  Promise.all(Array.from({ length: size }, () => WorkerProcess.start<Job, Report>(join(__dirname, 'worker.ts'))));

/** The violations of each, when all have finished the job. */
export async function runIn(workers: readonly LockWorker[], job: Omit<Job, 'redis'> & Partial<Job>): Promise<string[]> {
  await Promise.all(workers.map((worker) => worker.begin({ redis: realRedis, ...job } as Job)));
  return (await Promise.all(workers.map((worker) => worker.next('done')))).flatMap(({ violations }) => violations);
}
