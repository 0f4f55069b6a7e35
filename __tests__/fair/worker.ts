/** A process of its own with a fair lock, for tests that need several, or one to kill or to freeze. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type RedisClientOptions } from 'redis';
import { type Lease, RedisLockRegistry } from '../../lib';
import { type Stall, StallWatch, sharedNow } from './stalls';

export const KEY = 'key';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly expireAfter: number;
  readonly task: QueueingTask | TurnsTask | HoldingTask;
}

/** So many callers wait for the lock, and write down when they have it. */
export interface QueueingTask {
  readonly name: 'queue';
  readonly callers: number;
  /** ms in the section. */
  readonly work: number;
  /** Every so manieth caller gives up at a moment between 0 and `abortWithin` ms; 0: none does. */
  readonly aborting: number;
  readonly abortWithin: number;
}

/** So many callers take the lock over and over, from the server's time `begin` on for `duration` ms. */
export interface TurnsTask {
  readonly name: 'turns';
  readonly callers: number;
  readonly work: number;
  readonly begin: number;
  readonly duration: number;
}

/** Takes the lock and keeps it. */
export interface HoldingTask {
  readonly name: 'hold';
}

export type Report =
  | { readonly state: 'ready' | 'working' }
  | { readonly state: 'queued'; readonly aborted: number; readonly failures: readonly string[] }
  | {
      readonly state: 'turned';
      readonly turns: readonly number[];
      readonly waits: readonly Waited[];
      readonly stalls: readonly Stall[];
    };

/** From a call to its lease, on a clock that all processes share. */
export interface Waited {
  readonly called: number;
  readonly entered: number;
}

/** One section, as an independent connection saw it. */
export interface Entry {
  /** The owner in Redis. */
  readonly owner: string;
  readonly token: number;
  readonly pid: number;
  /** The other processes that were inside. */
  readonly others: readonly number[];
}

type Client = ReturnType<typeof createClient>;

function report(message: Report): void {
  process.send?.(message);
}

async function connect(options: RedisClientOptions): Promise<Client> {
  const client = createClient(options) as Client;
  client.on('error', () => {});
  await client.connect();
  return client;
}

export const logOf = (registryKey: string): string => `log of ${registryKey}`;
export const insideOf = (registryKey: string): string => `inside of ${registryKey}`;

/** Writes down, over a connection that no lock uses, who was inside. */
export async function section(witness: Client, registryKey: string, lease: Lease, work: number): Promise<void> {
  const me = `${process.pid}`;
  const [owner, , inside] = await witness
    .multi()
    .get(`${registryKey}:${KEY}`)
    .sAdd(insideOf(registryKey), me)
    .sMembers(insideOf(registryKey))
    .exec();
  const others = (inside as unknown as string[]).filter((pid) => pid !== me).map(Number);
  const entry = { owner: String(owner), token: lease.fencingToken ?? 0, pid: process.pid, others };
  if (work > 0) await sleep(work);
  await witness
    .multi()
    .rPush(logOf(registryKey), JSON.stringify(entry satisfies Entry))
    .sRem(insideOf(registryKey), me)
    .exec();
}

async function queue(registry: RedisLockRegistry, witness: Client, { registryKey }: Job, task: QueueingTask) {
  const failures: string[] = [];
  let aborted = 0;
  await Promise.all(
    Array.from({ length: task.callers }, async (_, i) => {
      const gaveUp = new AbortController();
      const aborts = task.aborting > 0 && i % task.aborting === 0;
      if (aborts) setTimeout(() => gaveUp.abort('gave up'), Math.random() * task.abortWithin);
      try {
        await registry.run(KEY, (lease) => section(witness, registryKey, lease, task.work), { signal: gaveUp.signal });
      } catch (error) {
        if (error === 'gave up') aborted++;
        else failures.push(String(error));
      }
    }),
  );
  report({ state: 'queued', aborted, failures });
}

async function takeTurns(registry: RedisLockRegistry, witness: Client, task: TurnsTask): Promise<void> {
  const lock = registry.obtain(KEY);
  const waits: Waited[] = [];
  const [seconds, micros] = await witness.time();
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
  report({ state: 'turned', turns, waits, stalls: watch.stalls });
}

async function work(job: Job): Promise<void> {
  const { redis, registryKey, expireAfter, task } = job;
  const [client, witness] = await Promise.all([connect(redis), connect(redis)]);
  const registry = new RedisLockRegistry(client, { registryKey, lockType: 'fair', expireAfter, fencing: true });
  report({ state: 'working' });
  switch (task.name) {
    case 'queue':
      return queue(registry, witness, job, task);
    case 'turns':
      return takeTurns(registry, witness, task);
    case 'hold':
      await registry.obtain(KEY).lock();
      return report({ state: 'queued', aborted: 0, failures: [] });
  }
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(2);
}

if (process.send !== undefined && require.main === module) {
  process.on('disconnect', () => process.exit(1)); // never outlive the test, however it ended
  process.on('message', (job: Job) => void work(job).catch(fail));
  report({ state: 'ready' });
}
