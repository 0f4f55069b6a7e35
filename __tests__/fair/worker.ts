/** A process whose callers wait for a fair lock, and log their entries. */

import type { RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../lib';
import { sharedNow } from '../../support/soak/awake-clock';
import { connect, report, serve } from '../support/serve';

export const KEY = 'key';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly callers: number;
}

export type Report = { readonly state: 'called' } | { readonly state: 'queued'; readonly failures: readonly string[] };

/** One section, recorded over an independent connection. */
export interface Entry {
  /** When its caller called, on the monotonic clock of the machine. */
  readonly called: number;
  readonly pid: number;
  /** Other processes inside the section. */
  readonly others: readonly number[];
}

export const logOf = (registryKey: string): string => `log of ${registryKey}`;

async function work({ redis, registryKey, callers }: Job): Promise<void> {
  const [client, recorder] = await Promise.all([connect(redis), connect(redis)]);
  const registry = new RedisLockRegistry(client, { registryKey, lockType: 'fair', expireAfter: 60_000 });
  const [me, insideKey] = [`${process.pid}`, `inside of ${registryKey}`];
  const call = (called = sharedNow()) =>
    registry.run(KEY, async () => {
      const [, inside] = await recorder.multi().sAdd(insideKey, me).sMembers(insideKey).exec();
      const others = (inside as unknown as string[]).filter((pid) => pid !== me).map(Number);
      const entry: Entry = { called, pid: process.pid, others };
      await recorder.multi().rPush(logOf(registryKey), JSON.stringify(entry)).sRem(insideKey, me).exec();
    });
  const calls = Promise.allSettled(Array.from({ length: callers }, () => call()));
  report<Report>({ state: 'called' });
  const failures = (await calls).flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  report<Report>({ state: 'queued', failures });
}

if (require.main === module) serve(work);
