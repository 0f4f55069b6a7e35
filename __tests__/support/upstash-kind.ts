import { Redis } from '@upstash/redis';
import { createClient } from 'redis';
import { fromUpstash } from '../../lib/clients/upstash';
import { startUpstashServer, upstashOptions } from '../../support/upstash-server';
import { type ClientKind, onServer } from './client-kinds';
import { connected } from './connected';
import { realRedis } from './redis';

/** The real client, and its REST API over the Redis of this run. */
export const upstashClient: ClientKind = {
  name: 'a client of @upstash/redis',
  server: 'real',
  mayReorder: true,
  open: onServer(async () => {
    const redis = await connected(createClient({ ...realRedis, RESP: 2 }));
    const server = await startUpstashServer(redis);
    const end = (): void => {
      server.stop();
      redis.destroy();
    };
    return { client: fromUpstash(new Redis(upstashOptions(server))), end };
  }),
};
