import { join } from 'node:path';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** A worker process that uses fair locks. */
export class FairWorker extends WorkerProcess<Report> {
  static async start(): Promise<FairWorker> {
    const worker = new FairWorker(join(__dirname, 'worker.ts'));
    await worker.next('ready');
    return worker;
  }

  static startAll(size: number): Promise<FairWorker[]> {
    return Promise.all(Array.from({ length: size }, () => FairWorker.start()));
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Sends the job; resolves when the worker has started it. */
  begin(job: Job): Promise<void> {
    return this.assign(job);
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }
}
