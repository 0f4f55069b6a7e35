/** A process of the test of many waiters: callers of one semaphore, checked by an oracle in Redis. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClientOptions } from 'redis';
import { type Lease, RedisLockRegistry } from '../../lib';
import { connect, report, serve } from '../support/serve';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly permits: number;
  readonly expireAfter: number;
  readonly callers: number;
  /** The sorted set of those inside. */
  readonly inside: string;
}

/** `most`: the largest number that was inside at a time, of all processes. */
export interface Report {
  readonly state: 'done';
  readonly most: number;
  readonly entered: number;
}

/**
 * Enters the oracle's set for as long as the lease lasts, and counts it. A process that is killed leaves it no sooner
 * than its leases end.
 */
const ENTER = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return redis.call('ZCOUNT', KEYS[1], now, '+inf')`;

async function work({ redis, registryKey, permits, expireAfter, callers, inside }: Job): Promise<void> {
  const client = await connect(redis);
  const oracle = await connect(redis);
  const registry = new RedisLockRegistry(client, { registryKey, expireAfter, onWarning: () => undefined });
  const semaphore = registry.semaphore('key', { permits });
  let most = 0;
  let entered = 0;
  const section = async (lease: Lease, caller: number): Promise<void> => {
    const member = `${process.pid}:${caller}`;
    const left = String(Math.floor(lease.remaining));
    most = Math.max(most, Number(await oracle.eval(ENTER, { keys: [inside], arguments: [member, left] })));
    entered++;
    await sleep(30 + Math.random() * 30);
    await oracle.zRem(inside, member);
  };
  await Promise.all(Array.from({ length: callers }, (_, i) => semaphore.run((lease) => section(lease, i))));
  await registry.close();
  report<Report>({ state: 'done', most, entered });
}

serve(work);
