import { join } from 'node:path';
import { WorkerProcess } from '../support/worker-process';
import type { Report, TurnsJob } from './turn-taker';

/** One process whose callers take the same lock over and over. */
export class TurnTaker extends WorkerProcess<Report> {
  static async start(): Promise<TurnTaker> {
    const taker = new TurnTaker(join(__dirname, 'turn-taker.ts'));
    await taker.next('ready');
    return taker;
  }

  /** Gives it its job; resolves when the job is done. */
  async take(job: TurnsJob): Promise<Extract<Report, { state: 'done' }>> {
    await this.assign(job);
    return this.next('done');
  }
}
