/** A process whose callers wait for a fair lock. */

import type { RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../../lib';
import { connect, report, serve } from '../../support/serve';

export const KEY = 'key';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly callers: number;
}

export type Report = { readonly state: 'called' } | { readonly state: 'queued'; readonly failures: readonly string[] };

async function work({ redis, registryKey, callers }: Job): Promise<void> {
  const registry = new RedisLockRegistry(await connect(redis), { registryKey, lockType: 'fair', expireAfter: 60_000 });
  const enter = () => registry.run(KEY, () => undefined);
  const calls = Promise.allSettled(Array.from({ length: callers }, enter));
  report<Report>({ state: 'called' });
  const failures = (await calls).flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  report<Report>({ state: 'queued', failures });
}

if (require.main === module) serve(work);
