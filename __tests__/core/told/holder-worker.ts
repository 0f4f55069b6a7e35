/** A process whose task holds a lock until its signal aborts, and then says that it ends. */

import { once } from 'node:events';
import type { RedisClientOptions } from 'redis';
import { type LockLostError, RedisLockRegistry } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import { connect, report, serve } from '../../support/serve';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
  /** The name that it sets when its task ends. */
  readonly mark: string;
}

export type Report =
  | { readonly state: 'holds'; readonly id: string }
  | { readonly state: 'lost'; readonly reason: string; readonly by: string | undefined };

serve(async ({ redis, registryKey, lockType, mark }: Job) => {
  const client = await connect(redis);
  const registry = new RedisLockRegistry(client, { registryKey, lockType, inbox: true, onWarning: () => undefined });
  const running = registry.run('key', async ({ signal }) => {
    report<Report>({ state: 'holds', id: registry.id });
    if (!signal.aborted) await once(signal, 'abort');
    await client.set(mark, '1');
    const { reason, by } = signal.reason as LockLostError;
    report<Report>({ state: 'lost', reason, by });
  });
  await running.catch(() => undefined);
});
