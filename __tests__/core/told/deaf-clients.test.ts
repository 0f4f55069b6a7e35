import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { RedisClient } from '../../../lib';
import { createPool } from '../../support/pool';
import { createRealClient, describeReal, realRedis, uniqueKey } from '../../support/redis';
import { createRegistry, lossOf } from '../../support/test-registry';
import { until } from '../../support/until';
import { upstashClient } from '../../support/upstash-kind';

describeReal.each(['a pool', 'a client of @upstash/redis'] as const)(
  'A process with %s, which hears nothing',
  (kind) => {
    let client: RedisClient;
    let end: () => Promise<unknown>;

    beforeAll(async () => {
      if (kind === 'a pool') {
        const pool = createPool(realRedis, { minimum: 1 });
        pool.on('error', () => undefined);
        await pool.connect();
        client = pool as unknown as RedisClient;
        end = async () => pool.destroy();
      } else {
        const clients = await upstashClient.open();
        client = clients.clients[0] as RedisClient;
        end = async () => clients.close();
      }
    });

    afterAll(async () => {
      await end();
    });

    it('replaces others after their grace, and asks them, and is neither replaced nor asked', async () => {
      const registryKey = uniqueKey('deaf');
      const deaf = createRegistry(client, { registryKey, name: 'deaf', inbox: true });
      const other = createRegistry(await createRealClient(), { registryKey, name: 'other' });
      const held = await other.registry.obtain('key').lock({ replace: true });
      expect(await deaf.registry.obtain('key').ask('please')).toBe(true);
      await until(() => held.asked.aborted);
      const lost = lossOf(held);
      const replacing = deaf.registry.obtain('key').lock({ replace: true, grace: 200 });
      expect((await lost).reason).toBe('stolen');
      await expect(held.unlock()).rejects.toMatchObject({ by: 'deaf' });
      const lease = await replacing;
      expect(await other.registry.obtain('key').tryLock({ replace: true })).toBeNull();
      expect(await other.registry.obtain('key').ask()).toBe(false);
      expect([lease.asked.aborted, lease.signal.aborted]).toEqual([false, false]);
      await lease.unlock();
      // Of a pool a warning says so; a client of @upstash/redis never has messages.
      const codes = kind === 'a pool' ? ['SUBSCRIBER_UNAVAILABLE'] : [];
      expect(deaf.warnings.map(({ code }) => code)).toEqual(codes);
      await deaf.registry.close();
    });
  },
);
