import { join } from 'node:path';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** One process that takes fair locks. */
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

  /** Gives it its job; resolves when it is on it. */
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
