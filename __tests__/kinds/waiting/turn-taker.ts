/** A process of its own whose callers take the same lock over and over. Its job comes as a message. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClientOptions } from 'redis';
import { type LockType, RedisLockRegistry } from '../../../lib';
import { collectGarbage } from '../../support/collected';
import { connect, report, serve } from '../../support/serve';

/** ms; a caller that waits for longer fails: the lock is dead. */
const LONGEST_WAIT = 5_000;
/** ms; `spin` polls, and chance decides who is next: a process may be without a turn for some seconds. */
const LONGEST_WAIT_OF_SPIN = 30_000;

export interface TurnsJob {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly handOver?: number | undefined;
  readonly sharedWithPollers?: boolean;
  readonly callers: number;
  /** ms that a caller holds the lock. Absent: it gives it back at once. */
  readonly work?: number;
  /** What ends it: the turns of this process, if they count, or ms. */
  readonly turns?: number;
  readonly ms: number;
  /** Turns after which the holder measures the heap, while the others wait. Absent: never. */
  readonly measureEvery?: number;
}

export interface Outcome {
  readonly turns: number;
  /** Bytes in use after a collection of garbage, at each measurement. */
  readonly heaps: readonly number[];
}

export interface Report {
  readonly state: 'done';
  readonly outcome: Outcome;
  readonly failures: readonly string[];
}

async function takeTurns(registry: RedisLockRegistry, job: TurnsJob, failures: string[]): Promise<Outcome> {
  const lock = registry.obtain('key');
  const { work = 0, turns: most = Number.POSITIVE_INFINITY, measureEvery = Number.POSITIVE_INFINITY } = job;
  const endsAt = performance.now() + job.ms;
  const heaps: number[] = [];
  let turns = 0;
  const caller = async () => {
    while (turns < most && performance.now() < endsAt && failures.length === 0) {
      const lease = await lock.lock({ waitTime: job.lockType === 'spin' ? LONGEST_WAIT_OF_SPIN : LONGEST_WAIT });
      turns++;
      if (work > 0) await sleep(work);
      if (turns % measureEvery === 0) {
        collectGarbage();
        heaps.push(process.memoryUsage().heapUsed);
      }
      await lease.unlock();
    }
  };
  const callers = Array.from({ length: job.callers }, () =>
    caller().catch((error: unknown) => failures.push(String(error))),
  );
  await Promise.all(callers);
  return { turns, heaps };
}

async function work(job: TurnsJob): Promise<void> {
  const client = await connect(job.redis);
  const failures: string[] = [];
  const registry = new RedisLockRegistry(client, {
    registryKey: job.registryKey,
    lockType: job.lockType,
    handOver: job.handOver,
    sharedWithPollers: job.sharedWithPollers,
    onWarning: ({ message }) => failures.push(message),
  });
  const outcome = await takeTurns(registry, job, failures);
  report<Report>({ state: 'done', outcome, failures: failures.slice(0, 3) });
}

serve(work);
