import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { RedisFixture } from './redis-fixture';

/** Contends for the lock with several callers of this process until `stop`, and counts their acquisitions. */
function occupy(registry: RedisLockRegistry, callers: number): { acquisitions(): number; stop(): Promise<void> } {
  let [acquisitions, stopped] = [0, false];
  const occupying = Array.from({ length: callers }, async () => {
    while (!stopped) {
      await registry.run('key', () => {
        acquisitions++;
        return sleep(2);
      });
    }
  });
  return {
    acquisitions: () => acquisitions,
    async stop() {
      stopped = true;
      await Promise.all(occupying);
    },
  };
}

describePrivate.each(['spin', 'pub-sub'] as const)('A process that always contends for a %s lock', (lockType) => {
  const fixture = RedisFixture.install();
  const HAND_OVER = 100;
  const IDLE = 20;
  const options = { lockType, handOver: HAND_OVER, idleBetweenTries: IDLE };

  it('lets another process acquire it after its time slice', async () => {
    const [{ registry }, other] = [await fixture.process(options), await fixture.process(options)];
    const occupation = occupy(registry, 4);
    for (let round = 0; round < 5; round++) {
      const asked = performance.now();
      await other.registry.run('key', () => undefined);
      expect(performance.now() - asked).toBeLessThan(2 * HAND_OVER + SLACK + machineDelay());
    }
    await occupation.stop();
    expect(await fixture.isHeld('key')).toBe(false);
  });

  it('keeps it beyond its time slice when no other process waits, with hardly any more requests', async () => {
    const slice = 50;
    const { registry } = await fixture.process({ ...options, handOver: slice });
    if (lockType === 'pub-sub') {
      // After a wait of its own it is subscribed, and is the only one that is notified.
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
    // One for each acquisition, and the release. Spin releases at the end of every slice: it cannot know of other waiters.
    const gaveUp = lockType === 'spin' ? Math.ceil(elapsed / slice) : 0;
    expect(sent).toBeLessThanOrEqual(occupation.acquisitions() + 1 + gaveUp + 2);
  });
});
