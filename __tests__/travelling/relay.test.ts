import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { createRealClient, describeReal, realRedis, uniqueKey } from '../support/redis';
import { WorkerProcess } from '../support/worker-process';
import type { Done, Relay } from './relay-worker';

/** ms; for a thousand times on a busy machine. */
const LIMIT = 300_000;

const HOPS = 1_000;

describeReal('A lease that goes on among 3 processes', () => {
  it.each(['spin', 'pub-sub', 'fair', 'redisson'] as const)(
    'A lease of a %s lock goes on 1,000 times among 3 processes, nobody gets in between, and its tokens rise',
    async (lockType) => {
      const client = await createRealClient();
      const [registryKey, texts, tokens] = [uniqueKey('relay'), uniqueKey('texts'), uniqueKey('tokens')];
      const workers = await Promise.all(
        [1, 2, 3].map(() => WorkerProcess.start<Relay, Done>(join(__dirname, 'relay-worker.ts'))),
      );
      const registry = new RedisLockRegistry(client, { registryKey, lockType, fencing: true });
      const lease = await registry.obtain('baton').lock();
      await client.rPush(tokens, String(lease.fencingToken));
      const relay = { redis: realRedis, registryKey, lockType, hops: HOPS, texts, tokens } as Relay;
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
