/** A process that takes part in a relay: it adopts the lease that comes to it, and detaches it for the next one. */

import { createCluster, type RedisClientOptions } from 'redis';
import { LockError, RedisLockRegistry } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import { connected } from '../../support/connected';
import { connect, report, serve } from '../../support/serve';

export interface Relay {
  /** Where the texts and the tokens are; the lock too, without a cluster. */
  readonly redis: RedisClientOptions;
  /** The ports of its masters. */
  readonly cluster: readonly number[] | undefined;
  readonly registryKey: string;
  readonly lockType: LockType;
  /** How often the lease goes on, in all processes together. */
  readonly hops: number;
  /** The list that the texts come by, and the one of the tokens. */
  readonly texts: string;
  readonly tokens: string;
}

/** `stolen`: how often somebody else got the lock before the relay was over. */
export interface Done {
  readonly state: 'done';
  readonly stolen: number;
}

const OVER = 'over';

const connectCluster = (ports: readonly number[]) =>
  connected(createCluster({ rootNodes: ports.map((port) => ({ socket: { host: '127.0.0.1', port } })) }));

serve(async ({ redis, cluster, registryKey, lockType, hops, texts, tokens }: Relay) => {
  const own = await connect(redis);
  const client = await (cluster === undefined ? connect(redis) : connectCluster(cluster));
  const registry = new RedisLockRegistry(client, { registryKey, lockType, fencing: true, idleBetweenTries: 20 });
  let isOver = false;
  let stolen = 0;

  const contend = async (): Promise<void> => {
    while (!isOver) {
      const lease = await registry.obtain('baton').tryLock({ waitTime: 200 }).catch(unlessLockError);
      if (lease === null) continue;
      // The last one of the relay has unlocked it.
      if ((await own.lLen(tokens)) <= hops) stolen++;
      await lease.unlock();
    }
  };

  const carry = async (): Promise<void> => {
    for (;;) {
      const text = (await own.blPop(texts, 0))?.element ?? OVER;
      if (text === OVER) return;
      const lease = await registry.adopt(text);
      const count = await own.rPush(tokens, String(lease.fencingToken));
      if (count <= hops) {
        await own.rPush(texts, await lease.detach());
        continue;
      }
      for (let i = 0; i < 10; i++) await own.rPush(texts, OVER);
      await lease.unlock();
      return;
    }
  };

  const contending = [contend(), contend()];
  await carry();
  isOver = true;
  await Promise.all(contending);
  report<Done>({ state: 'done', stolen });
});

/** On a busy machine Redis may seem to be silent. */
function unlessLockError(error: unknown): null {
  if (!(error instanceof LockError)) throw error;
  return null;
}
