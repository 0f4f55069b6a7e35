/** A process of its own whose callers take the same lock over and over. Its job comes as a message. */

import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, type RedisClientOptions } from 'redis';
import { type LockType, RedisLockRegistry } from '../../lib';

export interface TurnsJob {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly handOver: number | undefined;
  readonly callers: number;
  /** ms that a caller holds the lock; 0: it gives it back at once. */
  readonly work: number;
  /** What ends a round: the turns of this process, or ms. */
  readonly turns: number;
  readonly ms: number;
  /** Rounds one after another; each is reported. */
  readonly rounds: number;
}

export interface Round {
  readonly turns: number;
  /** ms that a caller of this process waited at most. */
  readonly longestWait: number;
  /** Bytes in use after a collection of garbage. */
  readonly heap: number;
}

export type Report =
  | { readonly state: 'ready' | 'working' }
  | { readonly state: 'done'; readonly rounds: readonly Round[]; readonly failures: readonly string[] };

function report(message: Report): void {
  process.send?.(message);
}

/** Only with `--expose-gc`, which Node takes at run time too. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

async function takeTurns(registry: RedisLockRegistry, job: TurnsJob): Promise<Round> {
  const lock = registry.obtain('key');
  const endsAt = performance.now() + job.ms;
  let turns = 0;
  let longestWait = 0;
  await Promise.all(
    Array.from({ length: job.callers }, async () => {
      while (turns < job.turns && performance.now() < endsAt) {
        const called = performance.now();
        const lease = await lock.lock({ waitTime: 5_000 });
        longestWait = Math.max(longestWait, performance.now() - called);
        turns++;
        if (job.work > 0) await sleep(job.work);
        await lease.unlock();
      }
    }),
  );
  collectGarbage();
  return { turns, longestWait, heap: process.memoryUsage().heapUsed };
}

async function work(job: TurnsJob): Promise<void> {
  const client = createClient(job.redis);
  client.on('error', () => {});
  await client.connect();
  const failures: string[] = [];
  const registry = new RedisLockRegistry(client, {
    registryKey: job.registryKey,
    lockType: job.lockType,
    handOver: job.handOver,
    onWarning: ({ message }) => failures.push(message),
  });
  report({ state: 'working' });
  const rounds: Round[] = [];
  try {
    for (let round = 0; round < job.rounds; round++) rounds.push(await takeTurns(registry, job));
  } catch (error) {
    failures.push(String(error));
  }
  report({ state: 'done', rounds, failures: failures.slice(0, 5) });
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(2);
}

process.on('disconnect', () => process.exit(1)); // it never outlives the test, however that ends
process.on('message', (job: TurnsJob) => void work(job).catch(fail));
report({ state: 'ready' });
