import { expect, it } from '@jest/globals';
import type { RedisClient } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import type { EvalOptions } from '../../../lib/redis/client';
import { DISTINCT_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';

/** A proxy that shards by the first key of a command over two servers, as twemproxy and Envoy do. */
async function sharded(servers: readonly PrivateRedis[]): Promise<RedisClient & { largest: number }> {
  const clients = await Promise.all(servers.map((server) => server.connect()));
  const route = ({ keys: [key = ''] = [] }: EvalOptions = {}) => {
    const hash = [...key.replace(/^.*\{|\}.*$/g, '')].reduce((h, c) => (h * 31 + c.charCodeAt(0)) >>> 0, 7);
    return clients[hash % clients.length] as (typeof clients)[number];
  };
  const proxy = {
    socketEpoch: 1,
    largest: 0,
    eval: (script: string, options?: EvalOptions) => counted(options).eval(script, options),
    evalSha: (sha1: string, options?: EvalOptions) => counted(options).evalSha(sha1, options),
  };
  const counted = (options?: EvalOptions) => {
    proxy.largest = Math.max(proxy.largest, options?.keys?.length ?? 0);
    return route(options);
  };
  return proxy;
}

const MANY = 60;

const keys = Array.from({ length: MANY }, (_, i) => `key-${i}`);

describePrivate('a sharding proxy that does not reject keys of several servers', () => {
  const servers = [PrivateRedis.install(), PrivateRedis.install()];

  /** Two registries, as of two processes, each through a proxy of its own. */
  const twoProcesses = async (lockType: LockType) => {
    const [one, two] = await Promise.all([sharded(servers), sharded(servers)]);
    const options = { lockType, registryKey: uniqueKey('sharded') };
    const of = (client: RedisClient) => createRegistry(client, options).registry;
    return { one, holder: of(one), other: of(two) };
  };

  it.each(DISTINCT_TYPES)(
    'A sharding proxy that rejects no keys of several servers keeps %s locks exclusive, and loses none',
    async (lockType) => {
      const { one, holder, other } = await twoProcesses(lockType);
      for (let round = 0; round < 5; round++) {
        const leases = await Promise.all(keys.map((key) => holder.obtain(key).lock({ ttl: 30_000 })));
        // Another order in every round, so that each batch has another first key.
        const order = [...keys.slice(round * 7), ...keys.slice(0, round * 7)].reverse();
        expect(await Promise.all(order.map((key) => other.obtain(key).tryLock()))).toEqual(order.map(() => null));
        await Promise.all(leases.map((lease) => lease.unlock()));
        const taken = await Promise.all(order.map((key) => other.obtain(key).lock({ ttl: 30_000 })));
        await Promise.all(taken.map((lease) => lease.unlock()));
      }
      // The probe, and no other command.
      expect(one.largest).toBe(20);
      one.largest = 0;
      await Promise.all(keys.map((key) => holder.run(key, () => undefined)));
      expect(one.largest).toBeLessThanOrEqual(4);
      for (const { admin } of servers) {
        for (const probe of await admin.keys('*:probe')) expect(await admin.pTTL(probe)).not.toBe(-1);
      }
    },
  );

  it.each(DISTINCT_TYPES)(
    'A sharding proxy that rejects no keys of several servers grants no %s lock of several keys twice',
    async (lockType) => {
      const { holder, other } = await twoProcesses(lockType);
      // Pairs of one server and of two, and more calls than make a probe.
      for (let i = 0; i < 24; i++) {
        const both = [keys[i % 8] as string, keys[(i * 3 + 1) % 11] as string];
        await holder.multi(both).run(async () => {
          for (const key of both) expect(await other.obtain(key).tryLock()).toBeNull();
        });
        for (const key of both) await other.run(key, () => undefined, { waitTime: 5_000 });
      }
    },
  );
});
