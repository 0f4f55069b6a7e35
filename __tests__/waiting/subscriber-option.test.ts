import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { listenersOf, RedisFixture } from './redis-fixture';

describePrivate('A subscriber that the application provides', () => {
  const fixture = RedisFixture.install();

  it.each([2, 3])('is used in place of a duplicate of the client, and not closed (RESP%s)', async (version) => {
    const subscriber = version === 2 ? await fixture.connectWithResp2() : await fixture.connect();
    const { registry, warnings } = fixture.registry(await fixture.connect(), { subscriber });
    const before = { listeners: listenersOf(subscriber), connections: await fixture.connections() };
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    const published = performance.now();
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
    expect(performance.now() - published).toBeLessThan(SLACK + machineDelay());
    expect(await fixture.connections()).toBe(before.connections);
    await registry.close();
    expect(subscriber.isReady).toBe(true);
    expect(await fixture.channels()).toEqual([]);
    expect(listenersOf(subscriber)).toEqual(before.listeners);
    expect(warnings).toEqual([]);
  });

  it('keeps the subscriptions of the application, on the same channel too', async () => {
    const subscriber = await fixture.connect();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber });
    const { channel, lock } = fixture.namesOf('key');
    const messages: string[] = [];
    await subscriber.subscribe(channel, (message) => void messages.push(message));
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => undefined);
    await fixture.untilIdle();
    await fixture.releaseAsOther('key');
    await waiting;
    await registry.close();
    expect(messages).toContain(lock);
    expect(await fixture.admin.publish(channel, 'after the registry')).toBe(1);
    await until(() => messages.includes('after the registry'));
  });

  it('may be shared by several registries', async () => {
    const subscriber = await fixture.connect();
    const [first, second] = [
      fixture.registry(await fixture.connect(), { subscriber }),
      fixture.registry(await fixture.connect(), { subscriber }),
    ];
    await fixture.holdAsOther('key');
    const waiting = [first, second].map(({ registry }) => registry.run('key', () => undefined));
    await fixture.untilIdle();
    await fixture.releaseAsOther('key');
    await Promise.all(waiting);
    await first.registry.close();
    // The other registry is still subscribed.
    await fixture.holdAsOther('key');
    const last = second.registry.run('key', () => 'entered');
    await fixture.untilIdle();
    await fixture.releaseAsOther('key');
    expect(await last).toBe('entered');
    await second.registry.close();
    expect(await fixture.channels()).toEqual([]);
  });
});
