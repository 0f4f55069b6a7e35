/** A worker process whose callers contend for one lock. It executes one task for each message. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../lib';
import type { LockType } from '../../lib/protocols/lock-types';

/** The server, registryKey and type of a lock. */
export interface LockTarget {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
}

export type Task =
  /** `callers` callers wait for `key`. */
  | { readonly name: 'wait'; readonly target: LockTarget; readonly key: string; readonly callers: number }
  /** For `ms`, `callers` callers acquire the lock of each target in a loop, and hold it for `work` ms. */
  | {
      readonly name: 'compete';
      readonly targets: readonly LockTarget[];
      readonly callers: number;
      readonly work: number;
      readonly ms: number;
    }
  /** Closes the registry, which rejects all waiters. */
  | { readonly name: 'close' };

export interface Answer {
  /** Acquisitions of each target. */
  readonly acquisitions: readonly number[];
  readonly violations: readonly string[];
  /** Callers that were rejected after the registry was closed. */
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

/** Counts the callers inside over an independent connection. */
async function competeIn(target: LockTarget, callers: number, work: number, ms: number) {
  const [registry, counter] = [await registryOn(target), await connect(target.redis)];
  const inside = `${target.registryKey}:inside`;
  const violations: string[] = [];
  let acquisitions = 0;
  const endsAt = performance.now() + ms;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < endsAt) {
        await registry.run('key', async () => {
          if (performance.now() >= endsAt) return;
          const entered = await counter.incr(inside);
          if (entered !== 1) violations.push(`${target.lockType}: entered as number ${entered}`);
          acquisitions++;
          await sleep(work);
          const left = await counter.decr(inside);
          if (left !== 0) violations.push(`${target.lockType}: left with ${left} still inside`);
        });
      }
    }),
  );
  return { acquisitions, violations };
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
    case 'compete': {
      const { callers, work, ms } = task;
      const outcomes = await Promise.all(task.targets.map((target) => competeIn(target, callers, work, ms)));
      return {
        acquisitions: outcomes.map(({ acquisitions }) => acquisitions),
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
  process.send?.({ acquisitions: [], violations: [], rejected: 0, ...outcome } satisfies Answer);
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(2);
}

process.on('disconnect', () => process.exit(1)); // ends with the test, for any reason
process.on('message', (task: Task) => void work(task).then(answer, fail));
answer({});
