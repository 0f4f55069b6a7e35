/** A process of the test of many waiters: callers of one semaphore, checked by an oracle in Redis. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type RedisClientOptions } from 'redis';
import { type Lease, RedisLockRegistry } from '../../lib';
import { connected } from '../support/connected';

export interface Job {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly permits: number;
  readonly expireAfter: number;
  readonly callers: number;
  /** The sorted set of those inside. */
  readonly inside: string;
}

export type Report =
  | { readonly state: 'ready' | 'working' }
  /** `most`: the largest number that was inside at a time, of all processes. */
  | { readonly state: 'done'; readonly most: number; readonly entered: number };

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
  const client = await connected(createClient(redis));
  const oracle = await connected(createClient(redis));
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
  process.send?.({ state: 'working' } satisfies Report);
  await Promise.all(Array.from({ length: callers }, (_, i) => semaphore.run((lease) => section(lease, i))));
  await registry.close();
  process.send?.({ state: 'done', most, entered } satisfies Report);
}

function fail(error: unknown): never {
  console.error(error);
  process.exit(2);
}

process.on('disconnect', () => process.exit(1)); // ends with the test, for any reason
process.on('message', (job: Job) => void work(job).catch(fail));
process.send?.({ state: 'ready' } satisfies Report);
