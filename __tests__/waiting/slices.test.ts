import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { RedisFixture } from './redis-fixture';

describePrivate.each(['spin', 'pub-sub'] as const)('A process that always contends for a %s lock', (lockType) => {
  const fixture = RedisFixture.install();
  const HAND_OVER = 100;
  const options = { lockType, handOver: HAND_OVER, idleBetweenTries: 20 };

  it('lets another process acquire it after its time slice', async () => {
    const [{ registry }, other] = [await fixture.process(options), await fixture.process(options)];
    let isOver = false;
    const busy = [1, 2, 3, 4].map(async () => {
      while (!isOver) await registry.run('key', () => sleep(2));
    });
    for (let round = 0; round < 5; round++) {
      const asked = performance.now();
      await other.registry.run('key', () => undefined);
      expect(performance.now() - asked).toBeLessThan(2 * HAND_OVER + SLACK + machineDelay());
    }
    isOver = true;
    await Promise.all(busy);
    expect(await fixture.isHeld('key')).toBe(false);
  });
});
