import { expect, it } from '@jest/globals';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

const ROUNDS = 15;

describePrivate('A hand-over from one process to another', () => {
  const fixture = RedisFixture.install();

  it('costs two requests: the release, and one attempt of the waiter that was notified', async () => {
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
    for (let i = 0; i < ROUNDS; i++) requests.push(await handOver());
    expect(requests).toEqual(Array(ROUNDS).fill(2));
  });
});
