import { join } from 'node:path';
import { WorkerProcess } from '../../support/worker-process';
import type { Report, TurnsJob } from './turn-taker';

/** One process whose callers take the same lock over and over. */
export const startTaker = () => WorkerProcess.start<TurnsJob, Report>(join(__dirname, 'turn-taker.ts'));

/** Gives it its job; resolves when the job is done. */
export async function takeTurns(taker: WorkerProcess<TurnsJob, Report>, job: TurnsJob): Promise<Report> {
  await taker.begin(job);
  return taker.next('done');
}
