import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../../lib';
import { startRedis } from '../../../support/redis';
import { DISTINCT_TYPES } from '../../support/lock-types';
import { machineDelay } from '../../support/machine-delay';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../../support/redis';
import { until, WAIT_LIMIT } from '../../support/until';
import { type LockWorker, runIn, startWorkers } from './lock-worker';

/** More than a process may stand still on a busy machine. */
const TTL = 2_000;
/** ms of allowed delay: starting processes keeps a small machine busy. */
const SLACK = 600;

describeReal.each(DISTINCT_TYPES)('A process with a %s lock', (lockType) => {
  let client: TestClient;
  let registryKey: string;
  let registry: RedisLockRegistry;

  beforeAll(async () => {
    client = await createRealClient();
  });

  beforeEach(() => {
    registryKey = uniqueKey('processes');
    registry = new RedisLockRegistry(client, {
      registryKey,
      lockType,
      fairLockWaitTimeout: TTL, // as in the workers
      idleBetweenTries: 10,
    });
  });

  afterEach(() => registry.close({ timeout: 0 }));

  /** Without the companion keys of Redisson's locks, which have no expiry in its format. */
  const keysInRedis = async () =>
    (await client.keys(`*${registryKey}*`)).filter((name) => !name.startsWith('redisson_lock_'));

  it('A process with a lock that is killed is succeeded by another process as soon as its key has expired (P2)', async () => {
    const [worker] = (await startWorkers(1)) as [LockWorker];
    await runIn([worker], { registryKey, lockType, expireAfter: TTL, task: { name: 'hold', key: 'key' } });
    const lock = registry.obtain('key');
    // It renews until it is killed.
    expect(await lock.tryLock({ waitTime: 1.25 * TTL })).toBeNull();
    await worker.kill();
    const killed = performance.now();
    const lease = await lock.lock({ waitTime: TTL + WAIT_LIMIT });
    expect(performance.now() - killed).toBeLessThan(TTL + SLACK + machineDelay());
    await lease.unlock();
  });

  it('A process with a lock leaves no key without expiry when it is killed at a random moment (P2)', async () => {
    const keys = ['a', 'b', 'c'];
    const workers = await startWorkers(3);
    void runIn(workers, { registryKey, lockType, expireAfter: TTL, task: { name: 'loop', keys } }).catch(
      () => undefined,
    );
    const started = performance.now();
    for (const [i, worker] of workers.entries()) {
      const moment = i * 100 + Math.random() * 100;
      await until(() => performance.now() - started > moment);
      await worker.kill();
      for (const name of await keysInRedis()) expect(await client.pTTL(name)).not.toBe(-1);
    }
    const names = keys.map((key) => `${registryKey}:${key}`);
    await until(async () => (await client.exists(names)) === 0, { within: TTL + WAIT_LIMIT });
    // With redisson-fair each worker may have left a position, one behind the other.
    const waitTime = workers.length * TTL + WAIT_LIMIT;
    for (const key of keys) await (await registry.obtain(key).lock({ waitTime })).unlock();
  });

  it.each(['is there', 'is gone'])(
    'A process with a lock ends by itself when nothing is left of it but its registry, and Redis %s (P8)',
    async (redis) => {
      const server = await startRedis();
      const [worker] = (await startWorkers(1)) as [LockWorker];
      const ended = worker.ended();
      const task = { name: 'leave', whenGone: redis === 'is gone' } as const;
      await runIn([worker], { registryKey, lockType, expireAfter: 60_000, task, redis: { socket: server.address } });
      if (task.whenGone) server.kill('SIGKILL');
      try {
        expect(await Promise.race([ended, sleep(30_000, 'still alive', { ref: false })])).toBe(0);
      } finally {
        await server.stop();
      }
    },
  );
});
