/** A process that takes locks, checks that it holds them, and is paused before its writes have left it. */

import type { RedisClientOptions } from 'redis';
import { RedisLockRegistry } from '../../lib';
import { LOCK_TYPES, type LockType } from '../../lib/protocols/lock-types';
import { connect, report, serve } from '../support/serve';

export interface PausedJob {
  readonly redis: RedisClientOptions;
  /** By lock type: the key of each of them. */
  readonly keys: Readonly<Record<LockType, string>>;
  readonly registryKey: string;
  /** ms */
  readonly ttl: number;
}

export type PausedReport =
  | { readonly state: 'checked' }
  | { readonly state: 'written'; readonly outcomes: readonly string[] };

const SET = "return redis.call('SET', KEYS[1], ARGV[1])";

const outcomeOf = (writing: Promise<unknown>): Promise<string> =>
  writing.then(
    () => 'written',
    (error: Error) => error.name,
  );

async function work({ redis, keys, registryKey, ttl }: PausedJob): Promise<void> {
  const client = await connect(redis);
  const leases = await Promise.all(
    LOCK_TYPES.map((lockType) =>
      new RedisLockRegistry(client, { registryKey, lockType }).obtain(keys[lockType]).lock({ ttl }),
    ),
  );
  report<PausedReport>({ state: 'checked' });
  const writing = leases.flatMap((lease) => {
    lease.assertHeld();
    return [
      client.set(`${lease.key}:plain`, 'late'),
      lease.eval(SET, { keys: [`${lease.key}:guarded`], arguments: ['late'] }),
    ];
  });
  // Nothing of that has been sent: the client writes in a later step of the event loop.
  process.kill(process.pid, 'SIGSTOP');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  report<PausedReport>({ state: 'written', outcomes: await Promise.all(writing.map(outcomeOf)) });
}

serve(work);
