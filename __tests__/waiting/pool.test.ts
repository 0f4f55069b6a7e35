import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate('Waiting through a pool, which cannot subscribe', () => {
  const fixture = RedisFixture.install();

  const waitsFor = async (registry: RedisLockRegistry, key: string, isWaiting: () => unknown) => {
    await fixture.holdAsOther(key);
    const waiting = registry.run(key, () => 'entered');
    await until(isWaiting);
    await fixture.releaseAsOther(key);
    const givenBack = performance.now();
    expect(await waiting).toBe('entered');
    expect(performance.now() - givenBack).toBeLessThan(SLACK + machineDelay());
  };

  it('polls, with exactly one warning', async () => {
    const { registry, warnings } = fixture.registry(await fixture.connectPool(), { idleBetweenTries: 20 });
    for (const key of ['one', 'two', 'three']) {
      const before = await fixture.requests();
      await waitsFor(registry, key, async () => warnings.length > 0 && (await fixture.requests()) > before + 3);
    }
    await registry.close();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({
      code: 'SUBSCRIBER_UNAVAILABLE',
      message: expect.stringMatching('`subscriber`'),
    });
    expect(await fixture.listeners()).toEqual([]);
  });

  it('sleeps until it is notified through the option `subscriber`, without a warning', async () => {
    const subscriber = await fixture.connect();
    const { registry, warnings } = fixture.registry(await fixture.connectPool(), { subscriber });
    for (const key of ['one', 'two']) {
      await waitsFor(registry, key, async () => (await fixture.channels()).includes(fixture.namesOf(key).channel));
    }
    await registry.close();
    expect(subscriber.isReady).toBe(true);
    expect(await fixture.channels()).toEqual([]);
    expect(warnings).toEqual([]);
  });
});
