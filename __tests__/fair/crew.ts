import { join } from 'node:path';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** One process that takes fair locks. */
export class Worker extends WorkerProcess<Report> {
  static async start(): Promise<Worker> {
    const worker = new Worker(join(__dirname, 'worker.ts'));
    await worker.next('ready');
    return worker;
  }

  static startAll(size: number): Promise<Worker[]> {
    return Promise.all(Array.from({ length: size }, () => Worker.start()));
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
