import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { GlideClient, Logger } from '@valkey/valkey-glide';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis5';
import type { LockType, RedisClient } from '../../../lib';
import { fromIoredis, type Ioredis } from '../../../lib/clients/ioredis';
import { fromGlide } from '../../../lib/clients/valkey-glide';
import { startCluster } from '../../support/cluster';
import { type Connectable, connected } from '../../support/connected';
import { ioredisOptions, packages } from '../../support/ioredis-packages';
import { NOTIFIED_TYPES } from '../../support/lock-types';
import { Node } from '../../support/node';
import { type AnyClient, describePrivate } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { startSentinel } from '../../support/sentinel';
import { untilQuiet } from '../../support/server-load';
import { HAS_SHARDED_CHANNELS } from '../../support/since';
import { createRegistry, type TestRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** Longer than a test may take: a waiter that is not notified does not end. */
const NEVER = 600_000;

/** Of a cluster, they are on several nodes. */
const KEYS = ['one', 'two', 'three'];

/** Of type fair they need sharded channels on a cluster. */
const TYPES_OF_CLUSTER = HAS_SHARDED_CHANNELS
  ? NOTIFIED_TYPES
  : NOTIFIED_TYPES.filter((lockType) => lockType !== 'fair');

const LISTED = HAS_SHARDED_CHANNELS ? ['CHANNELS', 'SHARDCHANNELS'] : ['CHANNELS'];

/** A client, and what ends it. */
interface Made {
  readonly client: RedisClient;
  end(): unknown;
}

interface Servers {
  readonly masters: readonly Node[];
  stop(): Promise<void>;
}

async function ofNodeRedis(client: (AnyClient & Connectable) | Promise<AnyClient>): Promise<Made> {
  const made = client instanceof Promise ? await client : await connected(client);
  return { client: made, end: () => made.destroy() };
}

async function ofIoredis(instance: Ioredis): Promise<Made> {
  await until(() => instance.status === 'ready');
  return { client: fromIoredis(instance), end: () => instance.disconnect() };
}

async function ofGlide({ address }: Node): Promise<Made> {
  Logger.setLoggerConfig('off'); // it would write every NOSCRIPT to the console
  const client = await GlideClient.createClient({ addresses: [{ ...address }], requestTimeout: 10_000 });
  return { client: fromGlide(client), end: () => client.close() };
}

/** One process waits for another, through clients of their own, with locks of all types at a time. */
function waiting<S extends Servers>(
  start: () => Promise<S>,
  kinds: Record<string, (servers: S) => Promise<Made>>,
  types: readonly LockType[] = NOTIFIED_TYPES,
): void {
  let servers: S;
  const ended: (() => unknown)[] = [];

  beforeAll(async () => {
    servers = await start();
  });

  afterEach(() => {
    for (const end of ended.splice(0)) end();
  });

  afterAll(() => servers.stop());

  it.each(Object.entries(kinds))(
    'A wait ends by a message through %s, and leaves no channel and no connection',
    async (_, make) => {
      const admins = await Promise.all(servers.masters.map((node) => node.admin()));
      const registryKey = uniqueKey('registry');
      const process = async () => {
        const { client, end } = await make(servers);
        ended.push(end);
        const times = { idleBetweenTries: NEVER / 10, expireAfter: NEVER, commandTimeout: 60_000 };
        return types.map((lockType) =>
          createRegistry(client, { registryKey: `${registryKey}-${lockType}`, lockType, ...times }),
        );
      };
      const [holders, waiters] = [await process(), await process()];
      const forEachType = (use: (holder: TestRegistry, waiter: TestRegistry) => Promise<unknown>) =>
        Promise.all(holders.map((holder, i) => use(holder, waiters[i] as TestRegistry)));
      // A cluster client may connect to a node when it needs it.
      await forEachType((...both) =>
        Promise.all(both.flatMap(({ registry }) => KEYS.map((key) => registry.run(key, () => undefined)))),
      );
      const connections = () => Promise.all(admins.map(async (admin) => (await admin.clientList()).length));
      const channels = async () => {
        const listed = admins.flatMap((admin) =>
          LISTED.map((kind) => admin.sendCommand(['PUBSUB', kind, `*${registryKey}*`])),
        );
        return (await Promise.all(listed)).flat().map(String);
      };
      const before = await connections();
      for (const key of KEYS) {
        await forEachType(async (holder, waiter) => {
          const lease = await holder.registry.obtain(key).lock();
          const entering = waiter.registry.run(key, () => 'entered');
          await until(async () => (await channels()).some((channel) => channel.includes(holder.nameOf(key))));
          for (const admin of admins) await untilQuiet(admin);
          await lease.unlock();
          expect(await entering).toBe('entered');
        });
      }
      await forEachType((...both) => Promise.all(both.map(({ registry }) => registry.close())));
      await until(async () => (await channels()).length === 0);
      await until(async () => (await connections()).every((count, i) => count <= (before[i] as number)));
      expect([...holders, ...waiters].flatMap(({ warnings }) => warnings)).toEqual([]);
    },
  );
}

const oneServer = async () => {
  const node = await Node.start();
  return { masters: [node], stop: () => node.stop() };
};

type OneServer = Awaited<ReturnType<typeof oneServer>>;

const addressOf = ({ masters: [node] }: OneServer) => (node as Node).address;

describePrivate('Waiting on one server', () =>
  waiting(oneServer, {
    'redis 6': (servers) => ofNodeRedis(createClient({ socket: addressOf(servers) })),
    'redis 6 with RESP2': (servers) => ofNodeRedis(createClient({ socket: addressOf(servers), RESP: 2 })),
    'redis 5': (servers) => ofNodeRedis(createClient5({ socket: addressOf(servers) })),
    'valkey-glide': ({ masters: [node] }) => ofGlide(node as Node),
    ...Object.fromEntries(
      packages.map(({ name, single }) => [name, (servers) => ofIoredis(single(ioredisOptions(addressOf(servers))))]),
    ),
  }),
);

describePrivate('Waiting on a cluster', () =>
  waiting(
    startCluster,
    {
      'redis 6': (servers) => ofNodeRedis(servers.connect()),
      ...Object.fromEntries(
        packages.map(({ name, cluster }) => [
          name,
          ({ masters }) => ofIoredis(cluster(masters.map(({ address }) => ({ ...address })))),
        ]),
      ),
    },
    TYPES_OF_CLUSTER,
  ),
);

describePrivate('Waiting for a master that a sentinel names', () =>
  waiting(
    async () => {
      const servers = await startSentinel();
      return { ...servers, masters: servers.nodes };
    },
    { 'redis 6': (servers) => ofNodeRedis(servers.connect() as Promise<AnyClient>) },
  ),
);
