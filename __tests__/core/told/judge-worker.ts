/** A process whose callers replace each other, and those of other processes, and note where two sections meet. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createCluster, type RedisClientOptions } from 'redis';
import { LockLostError, RedisLockRegistry } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import { connected } from '../../support/connected';
import { connect, report, serve } from '../../support/serve';

export interface Job {
  /** Where the judge is; the lock too, without a cluster. */
  readonly redis: RedisClientOptions;
  /** The ports of its masters. */
  readonly cluster: readonly number[] | undefined;
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly callers: number;
  /** Else its callers wait in line. */
  readonly replaces: boolean;
  /** ms */
  readonly grace: number;
  /** How many sections there are to be, in all processes together. */
  readonly sections: number;
  /** The names of the judge: how many are inside, the tokens of the sections, the number of overlaps. */
  readonly inside: string;
  readonly tokens: string;
  readonly overlaps: string;
}

/** `longest`: ms of the longest call of those that entered. */
export interface Done {
  readonly state: 'done';
  readonly longest: number;
}

const connectCluster = (ports: readonly number[]) =>
  connected(createCluster({ rootNodes: ports.map((port) => ({ socket: { host: '127.0.0.1', port } })) }));

serve(async ({ redis, cluster, registryKey, lockType, replaces, grace, sections, ...judge }: Job) => {
  const own = await connect(redis);
  const client = await (cluster === undefined ? connect(redis) : connectCluster(cluster));
  const options = {
    registryKey,
    lockType,
    fencing: true,
    idleBetweenTries: 20,
    inbox: true,
    onWarning: () => undefined,
  };
  const registry = new RedisLockRegistry(client, options);
  let longest = 0;
  const call = async (): Promise<void> => {
    const calledAt = performance.now();
    await registry.run(
      'key',
      async ({ fencingToken, signal }) => {
        longest = Math.max(longest, performance.now() - calledAt);
        if ((await own.incr(judge.inside)) > 1) await own.incr(judge.overlaps);
        await own.rPush(judge.tokens, String(fencingToken));
        await sleep(5 + 60 * Math.random(), undefined, { signal }).catch(() => sleep(10 * Math.random()));
        await own.decr(judge.inside);
      },
      replaces ? { replace: true, grace } : {},
    );
  };
  const loop = async (): Promise<void> => {
    while ((await own.lLen(judge.tokens)) < sections) {
      await call().catch((error: unknown) => {
        if (!(error instanceof LockLostError)) throw error;
      });
      // Without a pause nobody would ever enter.
      await sleep(150 * Math.random());
    }
  };
  await Promise.all(Array.from({ length: judge.callers }, loop));
  await registry.close();
  report<Done>({ state: 'done', longest });
});
