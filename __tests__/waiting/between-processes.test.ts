import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

const DELAY = 10;
const ROUNDS = 15;

/** Other work on the machine can only make it slower: one series of several that is fast enough shows that it is. */
const SERIES = 3;

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;

describePrivate(`Between two processes, ${DELAY} ms from Redis`, () => {
  const fixture = RedisFixture.install();
  let client: TestClient;
  let [first, second]: RedisLockRegistry[] = [];

  beforeEach(async () => {
    const { proxy, client: made } = await fixture.proxied();
    client = made;
    first = fixture.registry(client).registry;
    second = fixture.registry(await fixture.connect({}, proxy.address)).registry;
    await round(); // from now on the server knows the scripts
    proxy.requests.delay = DELAY;
    proxy.replies.delay = DELAY;
  });

  /** ms of a PING, and from the release in the one process to the entry in the other. */
  const round = async (): Promise<{ ping: number; handOver: number }> => {
    const lease = await (first as RedisLockRegistry).obtain('key').lock();
    let enteredAt = 0;
    const entering = (second as RedisLockRegistry).run('key', () => {
      enteredAt = performance.now();
    });
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    const pingedAt = performance.now();
    await client.ping();
    const releasedAt = performance.now();
    await Promise.all([lease.unlock(), entering]);
    return { ping: releasedAt - pingedAt, handOver: enteredAt - releasedAt };
  };

  it('a lock changes hands within 2.3 times a PING', async () => {
    let ratio = Number.POSITIVE_INFINITY;
    for (let series = 0; series < SERIES && ratio > 2.3; series++) {
      const rounds = [];
      for (let i = 0; i < ROUNDS; i++) rounds.push(await round());
      const ping = median(rounds.map((measured) => measured.ping));
      expect(ping).toBeGreaterThanOrEqual(2 * DELAY - 3); // the proxy's timers count in whole ms
      ratio = median(rounds.map((measured) => measured.handOver)) / ping;
    }
    expect(ratio).toBeLessThanOrEqual(2.3);
  });
});
