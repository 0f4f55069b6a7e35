import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { freePort } from '../../../support/free-port';
import { type RedisServer, startRedis } from '../../../support/redis';
import { type ClusterServers, startCluster } from '../../support/cluster';
import { holdAll, POLLING, SATURATED, type Scene } from './competition';
import { RIVALS } from './kinds';

/**
 * Two Node processes whose work is short: they react faster to each other's releases than Java does. It is about
 * reactions within ms, so it needs a machine with nothing else to do, and runs alone, after the other tests.
 */
const QUICK: Scene = { ...SATURATED, processes: 2, node: 2, work: 1, observed: 6_000 };

/** Beside those that listen, as Node's callers do. */
const COMPETITIONS = RIVALS.filter(({ rival }) => !POLLING.includes(rival)).map((kind) => ({ kind, scene: QUICK }));

describe('Java has its share beside two quick processes', () => {
  let server: RedisServer;
  let cluster: ClusterServers;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    server = await startRedis({ port });
    cluster = await startCluster();
  });

  afterAll(async () => {
    await Promise.all([server.stop(), cluster.stop()]);
  });

  it('Java has its share beside two quick processes on a server', async () => {
    await holdAll(COMPETITIONS, port, 1);
  }, 300_000);

  it('Java has its share beside two quick processes on a cluster', async () => {
    await holdAll(COMPETITIONS, { cluster: cluster.masters.map(({ address }) => address.port) }, 1);
  }, 300_000);
});
