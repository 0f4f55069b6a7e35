import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { RedisLockRegistryOptions } from '../../lib';
import { Oracle } from '../support/oracle';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

const CALLERS = 100;
const ROUNDS = 5;

describePrivate.each(['spin', 'pub-sub'] as const)('A %s lock with contending callers of one process', (lockType) => {
  const fixture = RedisFixture.install();

  it.each<[string, Partial<RedisLockRegistryOptions>, number, number]>([
    ['handed over', {}, 0, 0.2],
    ['released and acquired, with handOver: 0', { handOver: 0 }, 2.0, 2.1],
  ])(
    'A lock with contending callers of one process is %s: with this number of requests for each acquisition, in FIFO order',
    async (_, options, least, most) => {
      const { registry } = await fixture.process({ lockType, idleBetweenTries: 100, fencing: true, ...options });
      // Loads the scripts into the server.
      await Promise.all([1, 2].map(() => registry.run('warm up', () => undefined)));
      const before = await fixture.requests();
      const [order, tokens] = [[] as number[], [] as number[]];
      await Promise.all(
        Array.from({ length: CALLERS }, async (_, caller) => {
          for (let round = 0; round < ROUNDS; round++) {
            await registry.run('key', ({ fencingToken }) => {
              order.push(caller);
              tokens.push(fencingToken as number);
            });
          }
        }),
      );
      const sent = (await fixture.requests()) - before;
      expect(sent / (CALLERS * ROUNDS)).toBeGreaterThanOrEqual(least);
      expect(sent / (CALLERS * ROUNDS)).toBeLessThanOrEqual(most);
      // A caller that released and locks again is at the end of the queue.
      expect(order).toEqual(Array.from({ length: CALLERS * ROUNDS }, (_, turn) => turn % CALLERS));
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(await fixture.isHeld('key')).toBe(false);
    },
  );
});

describePrivate('A hand-over from one process to another', () => {
  const fixture = RedisFixture.install();

  it('A hand-over from one process to another costs two requests: the release, and one attempt of the waiter that was notified', async () => {
    const [holders, waiters] = [await fixture.process(), await fixture.process()];
    const handOver = async (): Promise<number> => {
      const lease = await holders.registry.obtain('key').lock();
      let after = Number.NaN;
      const entering = waiters.registry.run('key', async () => {
        after = await fixture.requests();
      });
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.untilIdle();
      const before = await fixture.requests();
      await Promise.all([lease.unlock(), entering]);
      return after - before;
    };
    await handOver(); // loads the scripts into the server
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
