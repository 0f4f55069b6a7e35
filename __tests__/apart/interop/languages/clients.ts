import { GlideClient, Logger } from '@valkey/valkey-glide';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import type { RedisClient } from '../../../../lib';
import { fromIoredis } from '../../../../lib/clients/ioredis';
import { fromGlide } from '../../../../lib/clients/valkey-glide';
import { packages } from '../../../support/ioredis-packages';

// It would write every NOSCRIPT to the console.
Logger.setLoggerConfig('off');

interface Connected {
  readonly client: RedisClient;
  end(): unknown;
}

/** Every client that speaks to Redis itself, each connected to this port of loopback. */
export const CLIENTS: readonly { readonly name: string; connect(port: number): Promise<Connected> }[] = [
  ...[createClient, createClient5].map((create, i) => ({
    name: `redis ${[6, 5][i]}`,
    async connect(port: number) {
      const client = (create as typeof createClient)({ socket: { host: '127.0.0.1', port } });
      await client.connect();
      return { client, end: () => client.destroy() };
    },
  })),
  ...packages.map(({ name, single }) => ({
    name,
    async connect(port: number) {
      const instance = single({ host: '127.0.0.1', port });
      return { client: fromIoredis(instance), end: () => instance.disconnect() };
    },
  })),
  {
    name: 'valkey-glide',
    async connect(port: number) {
      const addresses = [{ host: '127.0.0.1', port }];
      const instance = await GlideClient.createClient({ addresses, requestTimeout: 5_000 });
      return { client: fromGlide(instance), end: () => instance.close() };
    },
  },
];
