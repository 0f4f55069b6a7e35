import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { Stage } from './stage';

describePrivate("A subscriber of the caller's", () => {
  const stage = Stage.set();

  /** Listeners of events that a client has, by event. */
  const listenersOf = (client: TestClient) =>
    Object.fromEntries(client.eventNames().map((event) => [String(event), client.listenerCount(event)]));

  it.each([2, 3])('is used in place of a connection of our own, and not closed (RESP%s)', async (version) => {
    const subscriber = version === 2 ? await stage.connectWithResp2() : await stage.connect();
    const { registry, warnings } = stage.registry(await stage.connect(), { subscriber });
    const before = { listeners: listenersOf(subscriber), connections: await stage.connections() };
    await stage.hold('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    await stage.quiet();
    const told = performance.now();
    await stage.giveBack('key');
    expect(await waiting).toBe('entered');
    expect(performance.now() - told).toBeLessThan(SLACK);
    expect(await stage.connections()).toBe(before.connections);
    await registry.close();
    expect(subscriber.isReady).toBe(true);
    expect(await stage.channels()).toEqual([]);
    expect(listenersOf(subscriber)).toEqual(before.listeners);
    expect(warnings).toEqual([]);
  });

  it('keeps what its owner listens to, on the same channel too', async () => {
    const subscriber = await stage.connect();
    const { registry } = stage.registry(await stage.connect(), { subscriber });
    const { channel, lock } = stage.namesOf('key');
    const heard: string[] = [];
    await subscriber.subscribe(channel, (message) => void heard.push(message));
    await stage.hold('key');
    const waiting = registry.run('key', () => undefined);
    await stage.quiet();
    await stage.giveBack('key');
    await waiting;
    await registry.close();
    expect(heard).toContain(lock);
    expect(await stage.admin.publish(channel, 'after the registry')).toBe(1);
    await until(() => heard.includes('after the registry'));
  });

  it('may be shared by several registries', async () => {
    const subscriber = await stage.connect();
    const [first, second] = [
      stage.registry(await stage.connect(), { subscriber }),
      stage.registry(await stage.connect(), { subscriber }),
    ];
    await stage.hold('key');
    const waiting = [first, second].map(({ registry }) => registry.run('key', () => undefined));
    await stage.quiet();
    await stage.giveBack('key');
    await Promise.all(waiting);
    await first.registry.close();
    // The other one still hears.
    await stage.hold('key');
    const last = second.registry.run('key', () => 'entered');
    await stage.quiet();
    await stage.giveBack('key');
    expect(await last).toBe('entered');
    await second.registry.close();
    expect(await stage.channels()).toEqual([]);
  });

  // Whether it never answers or refuses: after a while of the one, at once after the other.
  it.each(['is not connected', 'may not subscribe'])(
    'that %s costs one warning, and bears no listener',
    async (how) => {
      const subscriber = await stage.connect(how === 'may not subscribe' ? await stage.user('-subscribe') : {});
      if (how === 'is not connected') subscriber.destroy();
      const before = listenersOf(subscriber);
      const options = { subscriber, idleBetweenTries: 20, commandTimeout: 200 };
      const { registry, warnings } = stage.registry(await stage.connect(), options);
      for (const key of ['one', 'two']) {
        await stage.hold(key);
        const waiting = registry.run(key, () => 'entered');
        await until(() => warnings.length > 0);
        await stage.giveBack(key);
        expect(await waiting).toBe('entered');
      }
      await registry.close();
      expect(warnings).toMatchObject([{ code: 'SUBSCRIBER_UNAVAILABLE' }]);
      expect(listenersOf(subscriber)).toEqual(before);
    },
  );
});
