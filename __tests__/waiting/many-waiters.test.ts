import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { requestsOf } from './redis-fixture';
import type { LockTarget } from './worker';
import { WorkerPool } from './worker-pool';

const PROCESSES = 4;

/** Number of waiters of one key, and for how many ms they are observed. */
const WAITING = 1_000;
const WAITING_OBSERVED = 4_000;

/** Contending callers of each process, ms for which each holds the lock, and for how many ms they are observed. */
const COMPETING = 10;
const WORK = 5;
const COMPETING_OBSERVED = 10_000;

describePrivate('A lock with waiters in several processes', () => {
  let [one, several]: [WorkerPool?, WorkerPool?] = [];
  let servers: PrivateRedis[];

  beforeAll(async () => {
    [one, several] = await Promise.all([WorkerPool.start(1), WorkerPool.start(PROCESSES)]);
    servers = await Promise.all([PrivateRedis.start(), PrivateRedis.start()]);
  });

  it(`costs each process fewer than 2 requests a second, and one channel, with ${WAITING} waiters (P9)`, async () => {
    const startWaiting = async (workers: WorkerPool, server: PrivateRedis) => {
      const registryKey = 'waiting';
      const lock = `${registryKey}:key`;
      const channel = `${registryKey}-channel:${lock}`;
      const admin: TestClient = await server.connect();
      await admin.set(lock, 'another', { PX: 60_000 });
      const target = { redis: { socket: server.address }, registryKey, lockType: 'pub-sub' } as const;
      await workers.run({ name: 'wait', target, key: 'key', callers: WAITING / workers.size });
      // Each process has subscribed, and has made one more attempt since.
      await until(async () => (await admin.pubSubNumSub(channel))[channel] === workers.size, { within: 10_000 });
      let requests = -1;
      await until(async () => {
        const before = requests;
        requests = await requestsOf(admin);
        await sleep(80);
        return requests === before;
      });
      return { workers, admin, channel };
    };
    const waiting = await Promise.all([
      startWaiting(one as WorkerPool, servers[0] as PrivateRedis),
      startWaiting(several as WorkerPool, servers[1] as PrivateRedis),
    ]);
    const observe = () => Promise.all(waiting.map(({ admin }) => requestsOf(admin)));
    const before = await observe();
    const started = performance.now();
    await sleep(WAITING_OBSERVED);
    const after = await observe();
    const seconds = (performance.now() - started) / 1_000;
    for (const [i, { workers, admin, channel }] of waiting.entries()) {
      const requests = (after[i] as number) - (before[i] as number);
      expect(requests / seconds / workers.size).toBeLessThan(2);
      expect(await admin.pubSubChannels()).toEqual([channel]);
      expect(await admin.clientList({ TYPE: 'PUBSUB' })).toHaveLength(workers.size);
    }
    for (const { workers, admin } of waiting) {
      const answers = await workers.run({ name: 'close' });
      expect(answers.map(({ rejected }) => rejected)).toEqual(answers.map(() => WAITING / workers.size));
      await until(async () => (await admin.pubSubChannels()).length === 0);
    }
  });

  it(`gives each of ${PROCESSES} processes 15 to 35 % of the acquisitions with pub-sub, at least 5 % with spin, without overlap`, async () => {
    // Both types at the same time, each with its own server: the callers sleep most of the time.
    const lockTypes = ['pub-sub', 'spin'] as const;
    const targets = lockTypes.map((lockType, i): LockTarget => {
      return { redis: { socket: (servers[i] as PrivateRedis).address }, registryKey: 'shares', lockType };
    });
    const task = { name: 'compete', targets, callers: COMPETING, work: WORK, ms: COMPETING_OBSERVED } as const;
    const answers = await (several as WorkerPool).run(task);
    expect(answers.flatMap(({ violations }) => violations)).toEqual([]);
    const [pubSub = [], spin = []] = targets.map((_, target) => {
      const acquisitions = answers.map((answer) => answer.acquisitions[target] as number);
      const all = acquisitions.reduce((sum, of) => sum + of, 0);
      expect(all).toBeGreaterThan(100); // enough for shares to mean something
      return acquisitions.map((of) => of / all);
    });
    expect(Math.min(...pubSub)).toBeGreaterThanOrEqual(0.15);
    expect(Math.max(...pubSub)).toBeLessThanOrEqual(0.35);
    expect(Math.min(...spin)).toBeGreaterThanOrEqual(0.05);
  });
});
