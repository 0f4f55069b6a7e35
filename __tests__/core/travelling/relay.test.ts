import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../../lib';
import { type ClusterServers, startCluster } from '../../support/cluster';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { createRealClient, describeReal, realRedis, uniqueKey } from '../../support/redis';
import { WorkerProcess } from '../../support/worker-process';
import type { Done, Relay } from './relay-worker';

/** ms; for a thousand times on a busy machine. */
const LIMIT = 300_000;

const HOPS = 1_000;

describeReal('A lease that goes on among 3 processes', () => {
  let servers: ClusterServers | undefined;

  afterEach(async () => {
    await servers?.stop();
    servers = undefined;
  });

  const cases = (['one server', 'a cluster'] as const).flatMap((where) =>
    TRAVELLING_TYPES.map((lockType) => [lockType, where] as const),
  );

  it.each(cases)(
    'A lease of a %s lock on %s goes on 1,000 times among 3 processes, nobody gets in between, and its tokens rise',
    async (lockType, where) => {
      const client = await createRealClient();
      servers = where === 'a cluster' ? await startCluster() : undefined;
      const cluster = servers?.masters.map(({ address }) => address.port);
      const [registryKey, texts, tokens] = [uniqueKey('relay'), uniqueKey('texts'), uniqueKey('tokens')];
      const workers = await Promise.all(
        [1, 2, 3].map(() => WorkerProcess.start<Relay, Done>(join(__dirname, 'relay-worker.ts'))),
      );
      const ofLock = (await servers?.connect()) ?? client;
      const registry = new RedisLockRegistry(ofLock, { registryKey, lockType, fencing: true });
      const lease = await registry.obtain('baton').lock();
      await client.rPush(tokens, String(lease.fencingToken));
      const relay = { redis: realRedis, cluster, registryKey, lockType, hops: HOPS, texts, tokens } as Relay;
      await Promise.all(workers.map((worker) => worker.begin(relay)));
      await client.rPush(texts, await lease.detach());
      const reports = await Promise.all(workers.map((worker) => worker.next('done')));
      expect(reports.map(({ stolen }) => stolen)).toEqual([0, 0, 0]);
      const minted = (await client.lRange(tokens, 0, -1)).map(Number);
      expect(minted).toHaveLength(HOPS + 1);
      expect(minted).toEqual([...new Set(minted)].sort((a, b) => a - b));
      await registry.close();
    },
    LIMIT,
  );
});
