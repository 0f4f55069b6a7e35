import { GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide';
import { createClient } from 'redis';
import { fromGlide } from '../../lib/valkey-glide';
import { adminOf, type ClientKind, clusterAdminOf } from './client-kinds';
import { startCluster } from './cluster';
import { connected } from './connected';
import { Node } from './node';
import type { TestClient } from './redis';

// It would write every NOSCRIPT to the console.
Logger.setLoggerConfig('off');

/** It knows no unix sockets: the server is one of its own. */
export const glideClient: ClientKind = {
  name: 'a client of valkey-glide',
  server: 'real',
  mayReorder: true,
  async open() {
    const node = await Node.start();
    const make = () => GlideClient.createClient({ addresses: [{ ...node.address }], requestTimeout: 5_000 });
    const instances = await Promise.all([make(), make()]);
    const admin: TestClient = createClient({ socket: node.address });
    await connected(admin);
    return {
      clients: [fromGlide(instances[0]), fromGlide(instances[1])],
      admin: adminOf(admin),
      async close() {
        for (const instance of instances) instance.close();
        admin.destroy();
        await node.stop();
      },
    };
  },
};

export const glideCluster: ClientKind = {
  name: 'a cluster of valkey-glide',
  server: 'real',
  mayReorder: true,
  async open() {
    const servers = await startCluster();
    const addresses = servers.masters.map(({ address }) => ({ ...address }));
    const make = () => GlideClusterClient.createClient({ addresses, requestTimeout: 5_000 });
    const instances = await Promise.all([make(), make()]);
    const admin = await servers.connect();
    return {
      clients: [fromGlide(instances[0]), fromGlide(instances[1])],
      admin: clusterAdminOf(admin),
      async close() {
        for (const instance of instances) instance.close();
        admin.destroy();
        await servers.stop();
      },
    };
  },
};
