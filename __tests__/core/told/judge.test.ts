import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import type { LockType } from '../../../lib';
import { type ClusterServers, startCluster } from '../../support/cluster';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { createRealClient, describeReal, realRedis, type TestClient, uniqueKey } from '../../support/redis';
import { WorkerProcess } from '../../support/worker-process';
import type { Done, Job } from './judge-worker';

/** ms; for some hundred sections on a busy machine. */
const LIMIT = 240_000;

/** ms */
const GRACE = 20_000;

const SECTIONS = 60;

describeReal('Callers of 3 processes that replace each other', () => {
  let servers: ClusterServers | undefined;

  afterEach(async () => {
    await servers?.stop();
    servers = undefined;
  });

  /** Runs the sections, and resolves to what the judge found. `replaces`: for each process. `during` disturbs. */
  async function judged(
    lockType: LockType,
    replaces: readonly boolean[],
    during: (client: TestClient, isOver: () => boolean, workers: readonly { readonly pid: number }[]) => Promise<void>,
    { cluster, grace = GRACE }: { cluster?: readonly number[]; grace?: number } = {},
  ) {
    const client = await createRealClient();
    const [registryKey, inside, tokens, overlaps] = ['judged', 'inside', 'tokens', 'overlaps'].map(uniqueKey) as [
      string,
      string,
      string,
      string,
    ];
    const start = () => WorkerProcess.start<Job, Done>(join(__dirname, 'judge-worker.ts'));
    const workers = await Promise.all(replaces.map(start));
    const job = { redis: realRedis, cluster, registryKey, lockType, callers: 4, grace, sections: SECTIONS };
    await Promise.all(
      workers.map((worker, i) =>
        worker.begin({ ...job, replaces: replaces[i] as boolean, inside, tokens, overlaps } as Job),
      ),
    );
    let isOver = false;
    const reports = Promise.all(workers.map((worker) => worker.next('done'))).finally(() => (isOver = true));
    const [done] = await Promise.all([reports, during(client, () => isOver, workers)]);
    const minted = (await client.lRange(tokens, 0, -1)).map(Number);
    const result = {
      overlaps: Number(await client.get(overlaps)),
      inside: await client.get(inside),
      rise: minted.every((token, i) => i === 0 || token > (minted[i - 1] as number)),
      left: cluster === undefined ? await client.exists(`${registryKey}:key`) : 0,
    };
    return { result, sections: minted.length, longest: Math.max(...done.map(({ longest }) => longest)) };
  }

  const CLEAN = { overlaps: 0, inside: '0', rise: true, left: 0 };

  it.each(TRAVELLING_TYPES)(
    'a %s lock has no overlap, tokens rise, and nothing is left in Redis',
    async (type) => {
      const { result, sections, longest } = await judged(type, [true, true, true], async () => {});
      expect(result).toEqual(CLEAN);
      expect(sections).toBeGreaterThanOrEqual(SECTIONS);
      expect(longest).toBeLessThan(GRACE);
    },
    LIMIT,
  );

  it(
    'with a grace of 0 meet in many sections: the judge sees that',
    async () => {
      const { result } = await judged('spin', [true, true, true], async () => {}, { grace: 0 });
      expect(result.overlaps).toBeGreaterThan(0);
    },
    LIMIT,
  );

  it.each(TRAVELLING_TYPES)(
    'of a %s lock, those that wait in line go on beside them',
    async (type) => {
      expect((await judged(type, [true, false, false], async () => {})).result).toEqual(CLEAN);
    },
    LIMIT,
  );

  it.each(TRAVELLING_TYPES)(
    'a %s lock has no overlap though connections for messages are killed, and nobody waits for all of the grace',
    async (type) => {
      const { result, longest } = await judged(type, [true, true, true], async (client, isOver) => {
        while (!isOver()) {
          await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'PUBSUB']);
          await sleep(100);
        }
      });
      expect(result).toEqual(CLEAN);
      expect(longest).toBeLessThan(GRACE);
    },
    LIMIT,
  );

  it.each(['spin', 'pub-sub'] as const)(
    'a %s lock has no overlap though processes are stopped for less than the grace',
    async (type) => {
      const { result } = await judged(type, [true, true, true], async (_, isOver, workers) => {
        for (let i = 0; !isOver(); i++) {
          const { pid } = workers[i % workers.length] as { readonly pid: number };
          try {
            process.kill(pid, 'SIGSTOP');
            await sleep(700);
            process.kill(pid, 'SIGCONT');
          } catch {}
          await sleep(300);
        }
      });
      expect(result).toEqual(CLEAN);
    },
    LIMIT,
  );

  it.each(['spin', 'fair'] as const)(
    'a %s lock on a cluster has no overlap: who is not counted answers',
    async (type) => {
      servers = await startCluster();
      const ports = servers.masters.map(({ address }) => address.port);
      expect((await judged(type, [true, true, true], async () => {}, { cluster: ports })).result).toEqual(CLEAN);
    },
    LIMIT,
  );
});
