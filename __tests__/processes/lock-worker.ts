import { join } from 'node:path';
import type { RedisClientOptions } from 'redis';
import { realRedis } from '../support/redis';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** A worker process that uses locks of any type. */
export class LockWorker extends WorkerProcess<Report> {
  static async start(): Promise<LockWorker> {
    const worker = new LockWorker(join(__dirname, 'worker.ts'));
    await worker.next('ready');
    return worker;
  }

  static startAll(size: number): Promise<LockWorker[]> {
    return Promise.all(Array.from({ length: size }, () => LockWorker.start()));
  }

  /** Sends the job; resolves when the worker has started it. */
  begin(job: Omit<Job, 'redis'>, redis: RedisClientOptions | undefined = realRedis): Promise<void> {
    return this.assign({ redis, ...job });
  }

  /** The violations, when the job is finished. */
  async done(): Promise<readonly string[]> {
    return (await this.next('done')).violations;
  }

  /** Sends SIGKILL; resolves when the process has ended. Rejects when it had ended before. */
  override async kill(): Promise<void> {
    if (this.child.exitCode !== null) throw new Error(`The worker had ended before, with ${this.child.exitCode}`);
    await super.kill();
  }

  /** The exit code, when the process has ended by itself. */
  async ended(): Promise<unknown> {
    const [code] = await this.exited;
    return code;
  }
}
