import { channel } from 'node:diagnostics_channel';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { FaultyProxy } from '../../support/proxy';
import { SLACK } from '../contract/timing';
import { RedisFixture } from '../kinds/waiting/redis-fixture';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { Program } from '../support/program';
import { createRegistry, elapsed, lossOf } from '../support/test-registry';
import { until } from '../support/until';

/** Where node-redis says that a client has another socket. */
const HANDED_OVER = 'node-redis:connection:handoff';

describePrivate('the server hands its clients over to another address (MOVING, to node-redis 6)', () => {
  const fixture = RedisFixture.install();

  /** Moves what is connected to `from`. Resolves when `clients` of them have said so. */
  async function move(from: FaultyProxy, clients: number): Promise<void> {
    let moved = 0;
    const count = (): void => void moved++;
    channel(HANDED_OVER).subscribe(count);
    const to = await fixture.redis.proxy();
    from.moveTo(to.address);
    await until(() => moved >= clients);
    channel(HANDED_OVER).unsubscribe(count);
  }

  const kinds = ['its own connection', 'a client of the application’s as `subscriber`'];
  const cases = kinds.flatMap((kind) =>
    (['pub-sub', 'redisson', 'fair'] as const).map((type) => [type, kind] as const),
  );

  it.each(cases)('P9: waiters of a %s registry with %s are notified as before', async (lockType, kind) => {
    const { proxy, client } = await fixture.proxied();
    const subscriber = kind === kinds[0] ? undefined : await fixture.connect({}, proxy.address);
    const { registry, warnings } = fixture.registry(client, { lockType, subscriber });
    const holders = await fixture.process({ lockType });
    const untilSubscribed = () =>
      until(async () => (await fixture.channels()).length === (lockType === 'fair' ? 2 : 1));
    for (let round = 0; round < 3; round++) {
      const lease = await holders.registry.obtain('key').lock();
      const waiting = registry.run('key', () => performance.now());
      await untilSubscribed();
      // While the caller waits.
      if (round === 1) await move(proxy, subscriber === undefined ? 1 : 2);
      await untilSubscribed();
      await fixture.untilIdle();
      await lease.unlock();
      const released = performance.now();
      expect((await waiting) - released).toBeLessThan(SLACK + machineDelay());
    }
    expect(warnings).toEqual([]);
  });

  it('P6: holders are asked about at once, as after a reconnect', async () => {
    const { proxy, client } = await fixture.proxied();
    const { registry, nameOf } = createRegistry(client);
    const lease = await registry.obtain('key').lock();
    await fixture.admin.set(nameOf('key'), 'another', { PX: 60_000 });
    const lost = lossOf(lease);
    await move(proxy, 1);
    expect(await elapsed(lost)).toBeLessThan(SLACK + machineDelay());
    expect((await lost).reason).toBe('stolen');
  });

  it('P8: the process ends when the application has closed its client only', async () => {
    const proxy = await fixture.redis.proxy();
    const program = ['-r', require.resolve('esbuild-register'), join(__dirname, 'handed-over-process.ts')];
    const child = new Program([process.execPath, ...program], { TEST_ADDRESS: JSON.stringify(proxy.address) });
    try {
      await child.prints('waited');
      proxy.moveTo((await fixture.redis.proxy()).address);
      expect(await child.succeeds()).toEqual(['waited', 'closed']);
    } finally {
      child.child.kill('SIGKILL');
    }
  });
});
