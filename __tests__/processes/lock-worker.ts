import { join } from 'node:path';
import type { RedisClientOptions } from 'redis';
import { realRedis } from '../support/redis';
import { WorkerProcess } from '../support/worker-process';
import type { Job, Report } from './worker';

/** One process that takes locks of any type. */
export class LockWorker extends WorkerProcess<Report> {
  static async start(): Promise<LockWorker> {
    const worker = new LockWorker(join(__dirname, 'worker.ts'));
    await worker.next('ready');
    return worker;
  }

  static startAll(size: number): Promise<LockWorker[]> {
    return Promise.all(Array.from({ length: size }, () => LockWorker.start()));
  }

  /** Gives it its job; resolves when it is on it. */
  begin(job: Omit<Job, 'redis'>, redis: RedisClientOptions | undefined = realRedis): Promise<void> {
    return this.assign({ redis, ...job });
  }

  /** What went wrong, when it has done its job. */
  async done(): Promise<readonly string[]> {
    return (await this.next('done')).violations;
  }

  /** SIGKILL; resolves when it is dead. Rejects when it had ended before, as it does when something went wrong. */
  override async kill(): Promise<void> {
    if (this.child.exitCode !== null) throw new Error(`The worker had ended before, with ${this.child.exitCode}`);
    await super.kill();
  }

  /** Its exit code, when it has ended by itself. */
  async ended(): Promise<unknown> {
    const [code] = await this.exited;
    return code;
  }
}
