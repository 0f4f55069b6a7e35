import { expect, it } from '@jest/globals';
import type { LockWarning, RedisLockRegistry } from '../../lib';
import type { FaultyProxy } from '../../support/proxy';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate('A pub/sub connection that cannot be opened', () => {
  const fixture = RedisFixture.install();

  const expectPolling = async (registry: RedisLockRegistry, warnings: readonly LockWarning[]) => {
    for (const key of ['one', 'two']) {
      await fixture.holdAsOther(key);
      const waiting = registry.run(key, () => 'entered');
      await until(() => warnings.length > 0);
      await fixture.releaseAsOther(key);
      const givenBack = performance.now();
      expect(await waiting).toBe('entered');
      expect(performance.now() - givenBack).toBeLessThan(SLACK + machineDelay());
    }
    await registry.close();
    expect(warnings).toMatchObject([{ code: 'SUBSCRIBER_UNAVAILABLE' }]);
  };

  const options = { idleBetweenTries: 20, commandTimeout: 200 };

  const strategies: Readonly<Record<string, number | false>> = { 'gives up': false, 'keeps trying': 5 };

  it.each([
    ['redis 6', 'gives up'],
    ['redis 6', 'keeps trying'],
    ['redis 5', 'gives up'],
    ['redis 5', 'keeps trying'],
  ])('because the port is closed costs one warning (%s, which %s)', async (version, whenRefused) => {
    const proxy: FaultyProxy = await fixture.redis.proxy();
    const reconnectStrategy = strategies[whenRefused] ?? false;
    const client =
      version === 'redis 6'
        ? await fixture.connect({ reconnectStrategy }, proxy.address)
        : await fixture.connectWithRedis5(reconnectStrategy, proxy.address);
    const { registry, warnings } = fixture.registry(client, options);
    proxy.refuse();
    await expectPolling(registry, warnings);
    const before = proxy.connections;
    await proxy.accept();
    await fixture.untilIdle();
    expect(proxy.connections).toBe(before);
  });

  it('because the server is at its connection limit costs one warning', async () => {
    const { registry, warnings } = fixture.registry(await fixture.connect(), options);
    const { maxclients = '' } = await fixture.admin.configGet('maxclients');
    await fixture.admin.configSet('maxclients', String((await fixture.admin.clientList()).length));
    try {
      await expectPolling(registry, warnings);
    } finally {
      await fixture.admin.configSet('maxclients', maxclients);
    }
  });
});
