import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import { RedisFixture } from './redis-fixture';

/** Keeps the lock in this process with so many callers until it is told to stop; answers with their turns. */
function occupy(registry: RedisLockRegistry, callers: number): { turns(): number; stop(): Promise<void> } {
  let [turns, stopped] = [0, false];
  const occupying = Array.from({ length: callers }, async () => {
    while (!stopped) {
      await registry.run('key', () => {
        turns++;
        return sleep(2);
      });
    }
  });
  return {
    turns: () => turns,
    async stop() {
      stopped = true;
      await Promise.all(occupying);
    },
  };
}

describePrivate.each(['spin', 'pub-sub'] as const)('A process whose callers always want a %s lock', (lockType) => {
  const fixture = RedisFixture.install();
  const HAND_OVER = 100;
  const IDLE = 20;
  const options = { lockType, handOver: HAND_OVER, idleBetweenTries: IDLE };

  it('lets another process have it after its slice of time', async () => {
    const [{ registry }, other] = [await fixture.process(options), await fixture.process(options)];
    const occupation = occupy(registry, 4);
    for (let round = 0; round < 5; round++) {
      const asked = performance.now();
      await other.registry.run('key', () => undefined);
      expect(performance.now() - asked).toBeLessThan(2 * HAND_OVER + SLACK);
    }
    await occupation.stop();
    expect(await fixture.isHeld('key')).toBe(false);
  });

  it('keeps it beyond its slice when nobody else waits, with hardly a request more', async () => {
    const slice = 50;
    const { registry } = await fixture.process({ ...options, handOver: slice });
    if (lockType === 'pub-sub') {
      // It had to wait once, so that it listens itself: nobody else than itself is told.
      await fixture.holdAsOther('key');
      const waiting = registry.run('key', () => undefined);
      await fixture.untilIdle();
      await fixture.releaseAsOther('key');
      await waiting;
    }
    const before = await fixture.requests();
    const started = performance.now();
    const occupation = occupy(registry, 4);
    await sleep(10 * slice);
    await occupation.stop();
    const elapsed = performance.now() - started;
    const sent = (await fixture.requests()) - before;
    // One for each turn, and the release. Spin gives it up at the end of every slice, and cannot know that it was for nothing.
    const gaveUp = lockType === 'spin' ? Math.ceil(elapsed / slice) : 0;
    expect(sent).toBeLessThanOrEqual(occupation.turns() + 1 + gaveUp + 2);
  });
});
