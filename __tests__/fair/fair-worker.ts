import { join } from 'node:path';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** A worker process that uses fair locks. */
export type FairWorker = WorkerProcess<Job, Report>;

export const startWorkers = (size: number): Promise<FairWorker[]> =>
  Promise.all(Array.from({ length: size }, () => WorkerProcess.start<Job, Report>(join(__dirname, 'worker.ts'))));
