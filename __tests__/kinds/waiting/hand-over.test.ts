import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { LockType, RedisLockRegistryOptions } from '../../../lib';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { Oracle } from '../../support/oracle';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';
import { RedisFixture } from './redis-fixture';

const CALLERS = 100;
const ROUNDS = 5;

/** What docs/guarantees.md says under "Within a process". */

describePrivate('A lock with contending callers of one process', () => {
  const fixture = RedisFixture.install();

  it.each<[string, LockType, Partial<RedisLockRegistryOptions>, number, number]>([
    ...TRAVELLING_TYPES.flatMap((lockType): [string, LockType, object, number, number][] => [
      ['handed over', lockType, { fencing: true }, 0, 0.2],
      ['handed over', lockType, { fencing: false }, 0, 0.2],
    ]),
    ['released and acquired', 'spin', { fencing: true, handOver: 0 }, 2.0, 2.1],
    ['released and acquired', 'pub-sub', { fencing: true, handOver: 0 }, 2.0, 2.1],
    ['released and acquired', 'redisson-fair', { fencing: true }, 2.0, 2.1],
  ])(
    'A lock with contending callers of one process is %s (%s, %j): with this number of requests for each acquisition, in FIFO order',
    async (_, lockType, options, least, most) => {
      const { registry } = await fixture.process({ lockType, idleBetweenTries: 100, ...options });
      // Loads the scripts into the server.
      await Promise.all([1, 2].map(() => registry.run('warm up', () => undefined)));
      const before = await fixture.requests();
      const [order, tokens] = [[] as number[], [] as (number | undefined)[]];
      await Promise.all(
        Array.from({ length: CALLERS }, async (_, caller) => {
          for (let round = 0; round < ROUNDS; round++) {
            await registry.run('key', ({ fencingToken }) => {
              order.push(caller);
              tokens.push(fencingToken);
            });
          }
        }),
      );
      const sent = (await fixture.requests()) - before;
      expect(sent / (CALLERS * ROUNDS)).toBeGreaterThanOrEqual(least);
      expect(sent / (CALLERS * ROUNDS)).toBeLessThanOrEqual(most);
      // A caller that released and locks again is at the end of the queue.
      expect(order).toEqual(Array.from({ length: CALLERS * ROUNDS }, (_, turn) => turn % CALLERS));
      if (options.fencing) expect(tokens).toEqual([...new Set(tokens as number[])].sort((a, b) => a - b));
      expect(await fixture.isHeld('key')).toBe(false);
    },
  );

  it.each(TRAVELLING_TYPES.flatMap((lockType) => [false, true].map((fencing) => ({ lockType, fencing }))))(
    'A lock with contending callers finds that it was deleted more than 50 ms after Redis confirmed it, and says so at unlock: %j',
    async (options) => {
      const { registry } = await fixture.process(options);
      const lock = registry.obtain('key');
      const lease = await lock.lock();
      const next = lock.lock();
      const startedAt = performance.now();
      await fixture.admin.del(fixture.namesOf('key').lock);
      await until(() => performance.now() - startedAt > 60);
      await expect(lease.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
      await (await next).unlock();
    },
  );
});

describePrivate('A hand-over from one process to another', () => {
  const fixture = RedisFixture.install();

  it('A hand-over from one process to another costs two requests: the release, and one attempt of the waiter that was notified', async () => {
    const [holders, waiters] = [await fixture.process(), await fixture.process()];
    // A registry whose callers wait also publishes to itself now and then: one script, with one message.
    const counts = async () => {
      const stats = await fixture.admin.info('commandstats');
      const calls = (name: string) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
      return { scripts: calls('eval') + calls('evalsha'), messages: calls('publish') };
    };
    const handOver = async (isReady = async () => true): Promise<number> => {
      const lease = await holders.registry.obtain('key').lock();
      let after = { scripts: Number.NaN, messages: Number.NaN };
      const entering = waiters.registry.run('key', async () => {
        after = await counts();
      });
      await until(async () => (await fixture.channels()).length === 1);
      // The waiter has left its mark, and leaves the next one two seconds later.
      await until(async () => (await fixture.admin.exists(`{${fixture.namesOf('key').lock}}:wanted`)) === 1);
      await until(isReady);
      await fixture.untilIdle();
      const before = await counts();
      await Promise.all([lease.unlock(), entering]);
      const toItself = after.messages - before.messages - 1;
      return after.scripts - before.scripts - toItself;
    };
    // Loads the scripts into the server, also that of the registry's message to itself.
    await handOver(async () => (await counts()).messages > 0);
    const requests: number[] = [];
    for (let i = 0; i < 15; i++) requests.push(await handOver());
    expect(requests).toEqual(Array(15).fill(2));
  });
});

describePrivate('Two registries that listen over one connection', () => {
  const fixture = RedisFixture.install();

  it('Two registries that listen over one connection have a lock in turn, though one of them is always busy', async () => {
    const options = { subscriber: await fixture.connect() };
    const [busy, other] = [await fixture.process(options), await fixture.process(options)];
    const lease = await other.registry.obtain('key').lock();
    let [turns, isOver] = [0, false];
    const callers = [1, 2].map(async () => {
      while (!isOver) await busy.registry.run('key', () => sleep(5).then(() => turns++));
    });
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    await lease.unlock();
    await until(() => turns > 0);
    await other.registry.run('key', () => undefined);
    isOver = true;
    expect(turns).toBeLessThan(50); // a slice has 10
    await Promise.all(callers);
  });
});

describePrivate.each(['spin', 'pub-sub'] as const)('A %s lock on a server without UNLINK', (lockType) => {
  const fixture = RedisFixture.install('--rename-command', 'UNLINK', '');

  it('A lock on a server without UNLINK is handed over, released at the end of a time slice, and released', async () => {
    const processes = await Promise.all(
      [1, 2].map(() => fixture.process({ lockType, idleBetweenTries: 10, handOver: 5 })),
    );
    const oracle = new Oracle(fixture.admin);
    const acquisitions = new Map<number, number>();
    await Promise.all(
      processes.flatMap(({ registry }, process) =>
        Array.from({ length: 3 }, async () => {
          for (let round = 0; round < 10; round++) {
            await registry.run('key', () => oracle.section(() => undefined));
            acquisitions.set(process, (acquisitions.get(process) ?? 0) + 1);
          }
        }),
      ),
    );
    expect([...acquisitions.values()]).toEqual([30, 30]);
    expect(oracle.violations).toEqual([]);
    expect(await fixture.isHeld('key')).toBe(false);
    expect(await fixture.calls('del')).toBeGreaterThan(0);
    for (const { warnings } of processes) expect(warnings).toEqual([]);
  });
});
