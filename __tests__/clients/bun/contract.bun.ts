import { type BunInternals, fromBun } from '../../../lib/clients/bun';
import { contractFor } from '../../contract/lock-contract';
import { adminOf, type ClientKind } from '../../support/client-kinds';
import { createRealClient } from '../../support/redis';

/* Runs under Bun: `npm run test:bun`. */

declare const Bun: { RedisClient: new (url: string) => BunInternals };

const bunClient: ClientKind = {
  name: "a client of Bun's",
  server: 'real',
  mayReorder: true,
  async open() {
    const url = process.env.TEST_REDIS_URL as string;
    const instances = [new Bun.RedisClient(url), new Bun.RedisClient(url)] as const;
    await Promise.all(instances.map((instance) => instance.connect()));
    const admin = await createRealClient();
    return {
      clients: [fromBun(instances[0]), fromBun(instances[1])],
      admin: adminOf(admin),
      async close() {
        for (const instance of instances) instance.close();
      },
    };
  },
};

contractFor(bunClient);
