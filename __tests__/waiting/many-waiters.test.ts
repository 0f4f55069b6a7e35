import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { runIn, startWorkers } from '../processes/lock-worker';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { requestsOf, untilQuiet } from '../support/server-load';
import { until } from '../support/until';

const PROCESSES = 4;

/** Number of waiters of one key, and for how many ms they are observed. */
const WAITING = 1_000;
const WAITING_OBSERVED = 4_000;

describePrivate('A lock with waiters in several processes', () => {
  it(`costs each process fewer than 2 requests a second, and one channel, with ${WAITING} waiters (P9)`, async () => {
    const startWaiting = async (size: number) => {
      const [workers, server] = await Promise.all([startWorkers(size), PrivateRedis.start()]);
      const registryKey = 'waiting';
      const lock = `${registryKey}:key`;
      const channel = `${registryKey}-channel:${lock}`;
      const admin: TestClient = await server.connect();
      await admin.set(lock, 'another', { PX: 60_000 });
      const job = { redis: { socket: server.address }, registryKey, lockType: 'pub-sub', expireAfter: 60_000 } as const;
      await runIn(workers, { ...job, task: { name: 'wait', key: 'key', callers: WAITING / size } });
      // Each process has subscribed, and has made one more attempt since.
      await until(async () => (await admin.pubSubNumSub(channel))[channel] === size, { within: 10_000 });
      await untilQuiet(admin);
      const close = () => runIn(workers, { ...job, task: { name: 'close' } });
      return { size, admin, channel, close };
    };
    const waiting = await Promise.all([startWaiting(1), startWaiting(PROCESSES)]);
    const observe = () => Promise.all(waiting.map(({ admin }) => requestsOf(admin)));
    const before = await observe();
    const started = performance.now();
    await sleep(WAITING_OBSERVED);
    const after = await observe();
    const seconds = (performance.now() - started) / 1_000;
    for (const [i, { size, admin, channel }] of waiting.entries()) {
      const requests = (after[i] as number) - (before[i] as number);
      expect(requests / seconds / size).toBeLessThan(2);
      expect(await admin.pubSubChannels()).toEqual([channel]);
      expect(await admin.clientList({ TYPE: 'PUBSUB' })).toHaveLength(size);
    }
    for (const { admin, close } of waiting) {
      expect(await close()).toHaveLength(WAITING);
      await until(async () => (await admin.pubSubChannels()).length === 0);
    }
  });
});
