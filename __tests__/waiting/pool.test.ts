import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate('Waiting through a pool, which cannot subscribe', () => {
  const fixture = RedisFixture.install();

  it('polls, with exactly one warning', async () => {
    const { registry, warnings } = fixture.registry(await fixture.connectPool(), { idleBetweenTries: 20 });
    for (const key of ['one', 'two', 'three']) {
      const before = await fixture.requests();
      await fixture.holdAsOther(key);
      const waiting = registry.run(key, () => 'entered');
      await until(async () => warnings.length > 0 && (await fixture.requests()) > before + 3);
      await fixture.releaseAsOther(key);
      const givenBack = performance.now();
      expect(await waiting).toBe('entered');
      expect(performance.now() - givenBack).toBeLessThan(SLACK + machineDelay());
    }
    await registry.close();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({
      code: 'SUBSCRIBER_UNAVAILABLE',
      message: expect.stringMatching('`subscriber`'),
    });
    expect(await fixture.listeners()).toEqual([]);
  });
});
