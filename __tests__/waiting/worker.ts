/** One of several processes whose callers want the same lock. Told what to do by messages. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../lib';
import type { LockType } from '../../lib/strategies';

/** Where a lock is, and how it is waited for. */
export interface LockTarget {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
}

export type Task =
  /** So many callers wait for `key`. */
  | { readonly name: 'wait'; readonly target: LockTarget; readonly key: string; readonly callers: number }
  /** How much CPU it has used so far. */
  | { readonly name: 'look at the clock' }
  /** So many callers take turns in each target, and each turn is `work` ms, for `ms`. */
  | {
      readonly name: 'compete';
      readonly targets: readonly LockTarget[];
      readonly callers: number;
      readonly work: number;
      readonly ms: number;
    }
  /** Everybody who waits is rejected. */
  | { readonly name: 'close' };

export interface Answer {
  /** ms of CPU, user and system. */
  readonly cpu: number;
  /** In each target. */
  readonly turns: readonly number[];
  readonly violations: readonly string[];
  /** Callers that were rejected since the registry was closed. */
  readonly rejected: number;
}

type Client = ReturnType<typeof createClient>;

let registry: RedisLockRegistry | undefined;
let waiting: Promise<unknown>[] = [];

async function connect(options: RedisClientOptions): Promise<Client> {
  const client = createClient(options) as Client;
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function registryOn({ redis, registryKey, lockType }: LockTarget): Promise<RedisLockRegistry> {
  return new RedisLockRegistry(await connect(redis), { registryKey, lockType });
}

/** Counts who is inside, over a connection that no lock uses. */
async function competeIn(target: LockTarget, callers: number, work: number, ms: number) {
  const [competing, judge] = [await registryOn(target), await connect(target.redis)];
  const inside = `${target.registryKey}:inside`;
  const violations: string[] = [];
  let turns = 0;
  const endsAt = performance.now() + ms;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < endsAt) {
        await competing.run('key', async () => {
          if (performance.now() >= endsAt) return;
          const entered = await judge.incr(inside);
          if (entered !== 1) violations.push(`${target.lockType}: entered as number ${entered}`);
          turns++;
          await sleep(work);
          const left = await judge.decr(inside);
          if (left !== 0) violations.push(`${target.lockType}: left with ${left} still inside`);
        });
      }
    }),
  );
  return { turns, violations };
}

async function work(task: Task): Promise<Partial<Answer>> {
  switch (task.name) {
    case 'wait': {
      registry = await registryOn(task.target);
      const lock = registry.obtain(task.key);
      waiting = Array.from({ length: task.callers }, () => lock.lock());
      for (const caller of waiting) caller.catch(() => {}); // counted at the end
      return {};
    }
    case 'look at the clock': {
      const { user, system } = process.cpuUsage();
      return { cpu: (user + system) / 1_000 };
    }
    case 'compete': {
      const { callers, work, ms } = task;
      const outcomes = await Promise.all(task.targets.map((target) => competeIn(target, callers, work, ms)));
      return {
        turns: outcomes.map(({ turns }) => turns),
        violations: outcomes.flatMap(({ violations }) => violations),
      };
    }
    case 'close': {
      await registry?.close();
      const outcomes = await Promise.allSettled(waiting);
      return { rejected: outcomes.filter(({ status }) => status === 'rejected').length };
    }
  }
}

function answer(outcome: Partial<Answer>): void {
  process.send?.({ cpu: 0, turns: [], violations: [], rejected: 0, ...outcome } satisfies Answer);
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(2);
}

process.on('disconnect', () => process.exit(1)); // never outlive the test, however it ended
process.on('message', (task: Task) => void work(task).then(answer, fail));
answer({});
