/** A worker process with a fair lock, for tests that need several processes, or one to kill or freeze. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { createClient, RedisClientOptions } from 'redis';
import { type Lease, RedisLockRegistry } from '../../lib';
import { connect, report, serve } from '../support/serve';
import { type Stall, StallWatch, sharedNow } from './stalls';

export const KEY = 'key';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly expireAfter: number;
  readonly task: QueueingTask | TurnsTask;
}

/** `callers` callers wait for the lock, and log their entries. */
export interface QueueingTask {
  readonly name: 'queue';
  readonly callers: number;
  /** ms from one call to the next. */
  readonly every: number;
  /** ms in the section. */
  readonly work: number;
  /** Every n-th caller aborts at a random time within `abortWithin` ms; 0: none. */
  readonly aborting: number;
  readonly abortWithin: number;
}

/** `callers` callers acquire the lock in a loop, from the wall-clock time `begin` on for `duration` ms. */
export interface TurnsTask {
  readonly name: 'turns';
  readonly callers: number;
  readonly work: number;
  readonly begin: number;
  readonly duration: number;
}

export type Report =
  | { readonly state: 'called' }
  | { readonly state: 'queued'; readonly aborted: number; readonly failures: readonly string[] }
  | {
      readonly state: 'turned';
      readonly turns: readonly number[];
      readonly waits: readonly Waited[];
      readonly stalls: readonly Stall[];
    };

/** Times of a call and of its grant, on the monotonic clock of the machine. */
export interface Waited {
  readonly called: number;
  readonly entered: number;
}

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

async function queue(registry: RedisLockRegistry, recorder: Client, { registryKey }: Job, task: QueueingTask) {
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

async function takeTurns(registry: RedisLockRegistry, recorder: Client, task: TurnsTask): Promise<void> {
  const lock = registry.obtain(KEY);
  const waits: Waited[] = [];
  const [seconds, micros] = await recorder.time();
  const now = Number(seconds) * 1_000 + Number(micros) / 1_000;
  await sleep(Math.max(0, task.begin - now));
  const end = sharedNow() + task.duration;
  const watch = new StallWatch();
  const turns = await Promise.all(
    Array.from({ length: task.callers }, async () => {
      for (let mine = 0; ; mine++) {
        const called = sharedNow();
        const lease = await lock.lock();
        const entered = sharedNow();
        if (entered < end) waits.push({ called, entered });
        await sleep(task.work);
        await lease.unlock();
        if (entered >= end) return mine;
      }
    }),
  );
  watch.stop();
  report<Report>({ state: 'turned', turns, waits, stalls: watch.stalls });
}

async function work(job: Job): Promise<void> {
  const { redis, registryKey, expireAfter, task } = job;
  const [client, recorder] = await Promise.all([connect(redis), connect(redis)]);
  const registry = new RedisLockRegistry(client, { registryKey, lockType: 'fair', expireAfter, fencing: true });
  switch (task.name) {
    case 'queue':
      return queue(registry, recorder, job, task);
    case 'turns':
      return takeTurns(registry, recorder, task);
  }
}

if (require.main === module) serve(work);
