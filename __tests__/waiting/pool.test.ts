import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { Stage } from './stage';

describePrivate('Waiting through a pool, which cannot listen', () => {
  const stage = Stage.set();

  const waitsFor = async (registry: RedisLockRegistry, key: string, asleep: () => unknown) => {
    await stage.hold(key);
    const waiting = registry.run(key, () => 'entered');
    await until(asleep);
    await stage.giveBack(key);
    const givenBack = performance.now();
    expect(await waiting).toBe('entered');
    expect(performance.now() - givenBack).toBeLessThan(SLACK);
  };

  it('polls, and warns of it exactly once', async () => {
    const { registry, warnings } = stage.registry(await stage.connectPool(), { idleBetweenTries: 20 });
    for (const key of ['one', 'two', 'three']) {
      const before = await stage.requests();
      await waitsFor(registry, key, async () => warnings.length > 0 && (await stage.requests()) > before + 3);
    }
    await registry.close();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({
      code: 'SUBSCRIBER_UNAVAILABLE',
      message: expect.stringMatching('`subscriber`'),
    });
    expect(await stage.listeners()).toEqual([]);
  });

  it('sleeps until it is told with the option `subscriber`, without a warning', async () => {
    const subscriber = await stage.connect();
    const { registry, warnings } = stage.registry(await stage.connectPool(), { subscriber });
    for (const key of ['one', 'two']) {
      await waitsFor(registry, key, async () => (await stage.channels()).includes(stage.namesOf(key).channel));
    }
    await registry.close();
    expect(subscriber.isReady).toBe(true);
    expect(await stage.channels()).toEqual([]);
    expect(warnings).toEqual([]);
  });
});
