import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../../lib';
import type { LockType } from '../../../lib/kinds';
import * as redisson from '../../../lib/kinds/redisson/kind';
import * as spring from '../../../lib/kinds/spring/kind';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { type TestClient, uniqueKey } from '../../support/redis';
import { until } from '../../support/until';
import { startTaker, takeTurns } from './turn-takers';

/** ms that a turn takes: so long that a poller hardly ever meets the moment between two turns. */
const WORK = 200;

/** ms for which the poller holds it: longer than the lock is left free, so that it is noticed. */
const HELD = 600;

/** ms between two attempts of the poller, as Spring's SPIN_LOCK has it. */
const IDLE = 100;

/** ms; the longest wait of a poller that has not been noticed, and of one that has. */
const FIRST = 6_000;
const LATER = 2_000;

/** ms that a busy machine may add, as often as a turn is taken meanwhile. */
const SLACK = 2_500;

/** The messages that a lock is left to those that poll. */
const LEFT: readonly string[] = [spring.SPRING_SCRIPTS.leftToPollers, redisson.LEFT_TO_POLLERS];

const TAKE_HASH = "return redis.call('EXISTS', KEYS[1]) == 0 and redis.call('HSET', KEYS[1], 'poller', 1) or 0";

const REDISSON: readonly LockType[] = ['redisson', 'redisson-fair'];

const CASES = [
  { lockType: 'pub-sub', callers: 4 },
  { lockType: 'pub-sub', callers: 1 },
  { lockType: 'pub-sub', callers: 4, handOver: 0 },
  { lockType: 'fair', callers: 4 },
  { lockType: 'redisson', callers: 4 },
  { lockType: 'redisson-fair', callers: 4 },
] as const satisfies { lockType: LockType; callers: number; handOver?: number }[];

describePrivate('A lock that a busy process takes over and over', () => {
  let redis: PrivateRedis;
  let poller: TestClient;

  beforeAll(async () => {
    redis = await PrivateRedis.start();
    poller = await redis.connect();
  });

  /** SET NX, or what is that for a hash. */
  const take = (name: string, isHash: boolean) =>
    isHash ? poller.eval(TAKE_HASH, { keys: [name] }) : poller.setNX(name, 'poller');

  /** Takes the lock from the busy process by polling, and gives it back. Returns the ms that it waited. */
  const takeByPolling = async (name: string, isHash: boolean): Promise<number> => {
    await until(async () => (await poller.exists(name)) === 1, { within: 10_000 });
    const since = performance.now();
    while (!(await take(name, isHash))) await sleep(IDLE);
    const waited = performance.now() - since;
    await poller.pExpire(name, 60_000);
    await sleep(HELD);
    await poller.del(name);
    return waited;
  };

  it('A lock that a busy process takes over and over comes to one that polls, soon, and sooner once it was noticed', async () => {
    const waits = CASES.map(async ({ lockType, callers, ...options }) => {
      const registryKey = uniqueKey('pollers');
      const busy = await startTaker();
      const handOver = 'handOver' in options ? options.handOver : undefined;
      const job = { redis: { socket: redis.address }, registryKey, lockType, handOver, sharedWithPollers: true };
      void takeTurns(busy, { ...job, callers, work: WORK, ms: 60_000 }).catch(() => undefined);
      const waited: number[] = [];
      for (let turn = 0; turn < 3; turn++) {
        waited.push(await takeByPolling(`${registryKey}:key`, REDISSON.includes(lockType)));
      }
      await busy.kill();
      return waited;
    });
    const all = await Promise.all(waits);
    for (const [turn, limit] of [FIRST, LATER, LATER].entries()) {
      const most = limit + SLACK + machineDelay();
      const late = CASES.filter((_, of) => (all[of]?.[turn] ?? Number.POSITIVE_INFINITY) > most);
      expect({ turn, late, waits: all }).toMatchObject({ late: [] });
    }
  });

  it.each([
    { lockType: 'pub-sub', channel: (registryKey: string) => `${registryKey}-channel:${registryKey}:key` },
    { lockType: 'redisson', channel: (registryKey: string) => `redisson_lock__channel:{${registryKey}:key}` },
  ] as const)(
    '$lockType: waiters are notified when nobody takes back a lock that was left to pollers',
    async (type) => {
      const registryKey = uniqueKey('left');
      const listener = await redis.connect();
      const messages: string[] = [];
      const leaving = new AbortController();
      await listener.subscribe(type.channel(registryKey), (message) => {
        messages.push(message);
        if (LEFT.includes(message)) leaving.abort();
      });
      const registry = new RedisLockRegistry(await redis.connect(), {
        registryKey,
        lockType: type.lockType,
        sharedWithPollers: true,
      });
      const take = async (): Promise<void> => {
        const { signal } = leaving;
        while (!signal.aborted) {
          const lease = await registry.obtain('key').tryLock({ waitTime: 30_000, signal });
          await lease?.unlock();
        }
      };
      const ends = await Promise.allSettled([take(), take()]);
      expect(ends.map(({ status }) => status)).toContain('rejected');
      await until(() => messages.slice(messages.findIndex((message) => LEFT.includes(message)) + 1).length > 0, {
        within: FIRST + SLACK,
      });
      expect(LEFT).not.toContain(messages.at(-1));
      expect(await poller.exists(`${registryKey}:key`)).toBe(0);
      await registry.close();
    },
    60_000,
  );
});
