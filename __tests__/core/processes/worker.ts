/** A worker process for tests that need several processes, or one to kill. It executes the job of its first message. */

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { createClient, RedisClientOptions } from 'redis';
import { LockError, RedisLockRegistry } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import { machineDelay } from '../../support/machine-delay';
import { connect, leaveAlone, report, serve } from '../../support/serve';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly expireAfter: number;
  readonly task: HoldingTask | LoopTask | LeavingTask | OnceTask | TransferTask;
}

/** Acquires the lock of `key` and holds it. */
export interface HoldingTask {
  readonly name: 'hold';
  readonly key: string;
}

/** Acquires and releases the locks of `keys` in a loop. */
export interface LoopTask {
  readonly name: 'loop';
  readonly keys: readonly string[];
}

/**
 * Each of `callers` callers moves 1 from one random account to another, `times` times, under the locks of both. The
 * accounts are keys in Redis that are read and then written.
 */
export interface TransferTask {
  readonly name: 'transfer';
  readonly callers: number;
  readonly times: number;
  readonly accounts: readonly string[];
}

/**
 * Acquires a lock, waits for another until a time-out, destroys its client, and has nothing left to do. Ends with 3 if
 * something keeps the process for longer than a moment.
 */
export interface LeavingTask {
  readonly name: 'leave';
  /** Waits for the end of Redis before it destroys its client. */
  readonly whenGone: boolean;
}

/** So many callers of `once`, whose task takes `work` ms and counts its runs in the key `counter`. */
export interface OnceTask {
  readonly name: 'once';
  readonly key: string;
  readonly callers: number;
  readonly work: number;
  readonly counter: string;
}

/** The task is finished. `results`: those of `once`. */
export interface Report {
  readonly state: 'done';
  readonly results?: readonly string[];
}

type Client = ReturnType<typeof createClient>;

const done = (results?: readonly string[]): void =>
  report<Report>(results === undefined ? { state: 'done' } : { state: 'done', results });

async function callOnce(registry: RedisLockRegistry, client: Client, task: OnceTask): Promise<string[]> {
  const { key, callers, work, counter } = task;
  const perform = async (): Promise<string> => {
    const run = await client.incr(counter);
    await sleep(work);
    return `${process.pid}, run ${run}`;
  };
  return Promise.all(Array.from({ length: callers }, () => registry.once(key, perform, { keepFor: 60_000 })));
}

async function loop(registry: RedisLockRegistry, { keys }: LoopTask): Promise<never> {
  for (let i = 0; ; i++) {
    const key = keys[i % keys.length] as string;
    const working = registry.run(key, () => sleep(Math.random() * 3));
    const trying = registry
      .obtain(key)
      .tryLock({ waitTime: 50 })
      .then((lease) => lease?.unlock());
    // A lease of this task may end, or Redis be silent for too long, while the machine stands still.
    await Promise.all([working.catch(unlessLockError), trying.catch(unlessLockError)]);
  }
}

function unlessLockError(error: unknown): void {
  if (!(error instanceof LockError)) throw error;
}

async function transfer(registry: RedisLockRegistry, client: Client, task: TransferTask): Promise<void> {
  const { accounts, callers, times } = task;
  const move = async (): Promise<void> => {
    const from = Math.floor(Math.random() * accounts.length);
    const to = (from + 1 + Math.floor(Math.random() * (accounts.length - 1))) % accounts.length;
    const keys = [accounts[from] as string, accounts[to] as string] as const;
    await registry.multi(keys).run(async () => {
      const [payer, payee] = await client.mGet([...keys]);
      await sleep(Math.random() * 2);
      await client.mSet([
        [keys[0], String(Number(payer) - 1)],
        [keys[1], String(Number(payee) + 1)],
      ]);
    });
  };
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let i = 0; i < times; i++) await move();
    }),
  );
}

async function work({ redis, registryKey, lockType, expireAfter, task }: Job): Promise<void> {
  const client = await connect(redis);
  const options = {
    registryKey,
    lockType,
    expireAfter,
    fairLockWaitTimeout: expireAfter,
    idleBetweenTries: 5,
    fencing: true,
  };
  const registry = new RedisLockRegistry(client, options);
  switch (task.name) {
    case 'transfer':
      await transfer(registry, await connect(redis), task);
      return done();
    case 'hold':
      await registry.obtain(task.key).lock();
      return done();
    case 'once':
      return done(await callOnce(registry, await connect(redis), task));
    case 'loop':
      return loop(registry, task);
    case 'leave':
      return leave(registry, new RedisLockRegistry(client, options), client, task);
  }
}

async function leave(
  registry: RedisLockRegistry,
  another: RedisLockRegistry,
  client: Client,
  task: LeavingTask,
): Promise<void> {
  await registry.obtain('left behind').lock();
  await another.obtain('taken').lock({ ttl: 60_000 });
  // Where the process stands still meanwhile, Redis is said to be silent.
  await registry.obtain('taken').tryLock({ waitTime: 100 }).catch(unlessLockError);
  done();
  if (task.whenGone) await once(client, 'error');
  client.destroy();
  leaveAlone();
  const leftAt = performance.now();
  process.on('exit', () => {
    if (performance.now() - leftAt > 2_000 + machineDelay()) process.exitCode = 3;
  });
}

serve(work);
