import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { requestsOf } from './redis-fixture';
import type { LockTarget } from './worker';
import { WorkerPool } from './worker-pool';

const PROCESSES = 4;

/** Callers in all that wait for one key, and for how many ms they are observed. */
const WAITING = 1_000;
const WAITING_OBSERVED = 4_000;

/** Callers of each process that take turns, ms of each turn, and for how many ms they do. */
const COMPETING = 10;
const WORK = 5;
const COMPETING_OBSERVED = 10_000;

describePrivate('A lock that the callers of several processes want', () => {
  let [one, several]: [WorkerPool?, WorkerPool?] = [];
  let servers: PrivateRedis[];

  beforeAll(async () => {
    [one, several] = await Promise.all([WorkerPool.start(1), WorkerPool.start(PROCESSES)]);
    servers = await Promise.all([PrivateRedis.start(), PrivateRedis.start()]);
  });

  it(`that is held costs each of them fewer than 2 requests a second, close to no CPU, and one channel, with ${WAITING} callers (P9)`, async () => {
    const fallAsleep = async (workers: WorkerPool, server: PrivateRedis) => {
      const registryKey = 'waiting';
      const lock = `${registryKey}:key`;
      const channel = `${registryKey}-channel:${lock}`;
      const admin: TestClient = await server.connect();
      await admin.set(lock, 'somebody', { PX: 60_000 });
      const target = { redis: { socket: server.address }, registryKey, lockType: 'pub-sub' } as const;
      await workers.do({ name: 'wait', target, key: 'key', callers: WAITING / workers.size });
      // Each process listens, and has looked once more since it does.
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
    const places = await Promise.all([
      fallAsleep(one as WorkerPool, servers[0] as PrivateRedis),
      fallAsleep(several as WorkerPool, servers[1] as PrivateRedis),
    ]);
    const observe = () =>
      Promise.all(
        places.map(async ({ workers, admin }) => ({
          requests: await requestsOf(admin),
          cpu: (await workers.do({ name: 'look at the clock' })).map((answer) => answer.cpu),
        })),
      );
    const before = await observe();
    const started = performance.now();
    await sleep(WAITING_OBSERVED);
    const after = await observe();
    const seconds = (performance.now() - started) / 1_000;
    for (const [i, { workers, admin, channel }] of places.entries()) {
      const [was, is] = [before[i] as (typeof before)[number], after[i] as (typeof after)[number]];
      expect((is.requests - was.requests) / seconds / workers.size).toBeLessThan(2);
      // ms of CPU in a second; an idle process takes some.
      for (const [process, cpu] of is.cpu.entries()) {
        expect((cpu - (was.cpu[process] as number)) / seconds).toBeLessThan(20);
      }
      expect(await admin.pubSubChannels()).toEqual([channel]);
      expect(await admin.clientList({ TYPE: 'PUBSUB' })).toHaveLength(workers.size);
    }
    for (const { workers, admin } of places) {
      const answers = await workers.do({ name: 'close' });
      expect(answers.map(({ rejected }) => rejected)).toEqual(answers.map(() => WAITING / workers.size));
      await until(async () => (await admin.pubSubChannels()).length === 0);
    }
  }, 40_000);

  it(`gives each of ${PROCESSES} its share: 15 to 35 % of the turns with pub-sub, at least 5 % with spin; one at a time`, async () => {
    // Both at the same time, each with a server of its own: they do nothing but sleep most of the time.
    const lockTypes = ['pub-sub', 'spin'] as const;
    const targets = lockTypes.map((lockType, i): LockTarget => {
      return { redis: { socket: (servers[i] as PrivateRedis).address }, registryKey: 'shares', lockType };
    });
    const task = { name: 'compete', targets, callers: COMPETING, work: WORK, ms: COMPETING_OBSERVED } as const;
    const answers = await (several as WorkerPool).do(task);
    expect(answers.flatMap(({ violations }) => violations)).toEqual([]);
    const [pubSub = [], spin = []] = targets.map((_, target) => {
      const turns = answers.map((answer) => answer.turns[target] as number);
      const all = turns.reduce((sum, of) => sum + of, 0);
      expect(all).toBeGreaterThan(COMPETING_OBSERVED / WORK / 5); // it is not for want of turns
      return turns.map((of) => of / all);
    });
    expect(Math.min(...pubSub)).toBeGreaterThanOrEqual(0.15);
    expect(Math.max(...pubSub)).toBeLessThanOrEqual(0.35);
    expect(Math.min(...spin)).toBeGreaterThanOrEqual(0.05);
  }, 40_000);
});
