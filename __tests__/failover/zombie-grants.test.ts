import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type ClusterServers, startCluster } from '../support/cluster';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate } from '../support/private-redis';
import { entersWithZombieGrant } from '../support/zombie-grant';
import { printTable } from './table';

const TRIES = 20;

describePrivate(
  'a cluster master that was replaced while it was frozen wakes up with a request to grant a lock',
  () => {
    let cluster: ClusterServers;
    const outcomes: { readonly lockType: string; readonly isZombie: boolean }[] = [];

    beforeAll(async () => {
      cluster = await startCluster({ replicas: true });
    });

    afterAll(async () => {
      await cluster.stop();
      const cells = LOCK_TYPES.map((lockType) => {
        const ofType = outcomes.filter((outcome) => outcome.lockType === lockType);
        return [lockType, ofType.length, ofType.filter(({ isZombie }) => isZombie).length];
      });
      printTable(['lock type', 'frozen masters that woke up', 'callers that entered with their grant'], cells);
    });

    it.each(Array.from({ length: TRIES }, (_, i) => i + 1))('and no caller enters with that: try %d', async (i) => {
      const lockType = LOCK_TYPES[i % LOCK_TYPES.length] as (typeof LOCK_TYPES)[number];
      const isZombie = await entersWithZombieGrant(cluster, lockType);
      outcomes.push({ lockType, isZombie });
      expect(isZombie).toBe(false);
    });
  },
);
