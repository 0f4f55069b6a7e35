import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../../lib';
import { connectTo, describePrivate, PrivateRedis } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';

/** ms from the far process to the server, and as much back. */
const DISTANCE = 10;

const NEAR_PROCESSES = 3;
const CALLERS = 3;
const TURNS = 5;

/** ms; without a head start, it waits for longer than this in nearly all runs. */
const LONG = 8_000;

describePrivate('A process that is farther from Redis than others', () => {
  const redis = PrivateRedis.install();

  it.each(['pub-sub', 'redisson'] as const)(
    'A process that is farther from Redis than others has its turns of a busy lock: %s',
    async (lockType) => {
      const proxy = await redis.proxy();
      const registryKey = uniqueKey();
      const open = async (client = redis.connect()) => createRegistry(await client, { registryKey, lockType }).registry;
      const far = await open(connectTo(proxy.address));
      const near = await Promise.all(Array.from({ length: NEAR_PROCESSES }, () => open()));
      let isOver = false;
      const keepBusy = async (registry: RedisLockRegistry) => {
        while (!isOver) await registry.run('key', () => sleep(2));
      };
      await far.run('key', () => undefined);
      proxy.delay = DISTANCE;
      const busy = near.flatMap((one) => Array.from({ length: CALLERS }, () => keepBusy(one)));
      const takeTurns = async () => {
        for (let turn = 0; turn < TURNS; turn++) await far.run('key', () => sleep(2), { waitTime: LONG });
      };
      await expect(takeTurns().finally(() => (isOver = true))).resolves.toBeUndefined();
      await Promise.all(busy);
    },
  );
});
