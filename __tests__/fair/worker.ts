/** A worker process with a fair lock, for tests that need several processes, or one to kill or freeze. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { createClient, RedisClientOptions } from 'redis';
import { type Lease, RedisLockRegistry } from '../../lib';
import { sharedNow } from '../../support/soak/awake-clock';
import { connect, report, serve } from '../support/serve';

export const KEY = 'key';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly expireAfter: number;
  readonly task: QueueingTask;
}

/** `callers` callers wait for the lock, and log their entries. */
interface QueueingTask {
  readonly callers: number;
  /** ms from one call to the next. */
  readonly every: number;
  /** ms in the section. */
  readonly work: number;
  /** Every n-th caller aborts at a random time within `abortWithin` ms; 0: none. */
  readonly aborting: number;
  readonly abortWithin: number;
}

export type Report =
  | { readonly state: 'called' }
  | { readonly state: 'queued'; readonly aborted: number; readonly failures: readonly string[] };

/** One section, recorded over an independent connection. */
export interface Entry {
  /** When its caller called, on the monotonic clock of the machine. */
  readonly called: number;
  readonly token: number;
  readonly pid: number;
  /** Other processes inside the section. */
  readonly others: readonly number[];
}

type Client = ReturnType<typeof createClient>;

export const logOf = (registryKey: string): string => `log of ${registryKey}`;
export const insideOf = (registryKey: string): string => `inside of ${registryKey}`;

/** Records the processes inside over an independent connection. */
async function section(
  recorder: Client,
  registryKey: string,
  called: number,
  lease: Lease,
  work: number,
): Promise<void> {
  const me = `${process.pid}`;
  const [, inside] = await recorder.multi().sAdd(insideOf(registryKey), me).sMembers(insideOf(registryKey)).exec();
  const others = (inside as unknown as string[]).filter((pid) => pid !== me).map(Number);
  const entry = { called, token: lease.fencingToken ?? 0, pid: process.pid, others };
  if (work > 0) await sleep(work);
  await recorder
    .multi()
    .rPush(logOf(registryKey), JSON.stringify(entry satisfies Entry))
    .sRem(insideOf(registryKey), me)
    .exec();
}

async function queue(registry: RedisLockRegistry, recorder: Client, { registryKey, task }: Job) {
  const failures: string[] = [];
  let aborted = 0;
  const calls: Promise<void>[] = [];
  const begun = sharedNow();
  for (let i = 0; i < task.callers; i++) {
    // Later calls do not move when a timer is late.
    const early = begun + i * task.every - sharedNow();
    if (early > 0) await sleep(early);
    calls.push(call(i));
  }
  report<Report>({ state: 'called' });
  await Promise.all(calls);
  report<Report>({ state: 'queued', aborted, failures });

  async function call(i: number): Promise<void> {
    const gaveUp = new AbortController();
    const aborts = task.aborting > 0 && i % task.aborting === 0;
    if (aborts) setTimeout(() => gaveUp.abort('gave up'), Math.random() * task.abortWithin);
    try {
      const called = sharedNow();
      await registry.run(KEY, (lease) => section(recorder, registryKey, called, lease, task.work), {
        signal: gaveUp.signal,
      });
    } catch (error) {
      if (error === 'gave up') aborted++;
      else failures.push(String(error));
    }
  }
}

async function work(job: Job): Promise<void> {
  const { redis, registryKey, expireAfter } = job;
  const [client, recorder] = await Promise.all([connect(redis), connect(redis)]);
  const registry = new RedisLockRegistry(client, { registryKey, lockType: 'fair', expireAfter, fencing: true });
  await queue(registry, recorder, job);
}

if (require.main === module) serve(work);
