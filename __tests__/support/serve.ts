import { createClient, type RedisClientOptions } from 'redis';
import { connected } from './connected';

/** Tells the test, from a process that it has started. */
export function report<Report extends { readonly state: string }>(message: Report): void {
  process.send?.(message);
}

const exit = (): never => process.exit(1);

function fail(error: unknown): never {
  console.error(error);
  process.exit(2);
}

/** Executes the jobs that a test sends to this process. The process never outlives the test, however that ends. */
export function serve<Job>(execute: (job: Job) => Promise<unknown>): void {
  process.on('disconnect', exit);
  process.on('message', (job: Job) => {
    report({ state: 'working' });
    execute(job).catch(fail);
  });
  report({ state: 'ready' });
}

/** From now on the process ends when it has nothing left to do. */
export function leaveAlone(): void {
  process.off('disconnect', exit);
  process.disconnect();
}

type Client = ReturnType<typeof createClient>;

export const connect = (options: RedisClientOptions): Promise<Client> => connected(createClient(options) as Client);
