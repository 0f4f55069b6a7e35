import { describe, expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

/** ms after the expiry of the key within which every waiter without a notification has polled (P9). */
const LATE = 100;

/** ms; ttl of the holder's key. */
const LIFE = 600;

describePrivate('A notification that is lost', () => {
  const fixture = RedisFixture.install();
  const keys = Array.from({ length: 5 }, (_, i) => `key-${i}`);

  it('by CLIENT KILL TYPE pubsub, while the keys are held: no waiter waits beyond their expiry (P9)', async () => {
    const { registry, warnings } = await fixture.process();
    await Promise.all(keys.map((key) => fixture.holdAsOther(key, LIFE)));
    const heldAt = performance.now();
    const waits = keys.map((key) => registry.run(key, () => performance.now() - heldAt - LIFE));
    await until(async () => (await fixture.channels()).length === keys.length);
    await fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
    const late = Math.max(...(await Promise.all(waits)));
    expect(late).toBeGreaterThan(-50 - machineDelay());
    expect(late).toBeLessThanOrEqual(LATE + machineDelay());
    expect(warnings).toEqual([]);
  });

  it('by the network: no waiter waits longer than ten poll intervals, for any ttl of the key', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber, idleBetweenTries: 40 });
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => undefined);
    await until(async () => (await fixture.channels()).length === 1);
    proxy.blackHole = true;
    await fixture.releaseAsOther('key');
    const givenBack = performance.now();
    await waiting;
    expect(performance.now() - givenBack).toBeLessThan(400 + SLACK + machineDelay());
    proxy.blackHole = false;
    proxy.reset();
  });

  it('between an unsubscribe in flight and a subscribe does not occur', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber });
    const wait = async (whenWaiting: () => Promise<unknown>) => {
      await fixture.holdAsOther('key');
      const waiting = registry.run('key', () => undefined);
      await whenWaiting();
      await fixture.releaseAsOther('key');
      const givenBack = performance.now();
      await waiting;
      return performance.now() - givenBack;
    };
    await wait(() => fixture.untilIdle());
    // The channel lingers; its unsubscribe is executed, but its reply is held back.
    proxy.replies.hold = true;
    await until(async () => (await fixture.channels()).length === 0);
    const took = await wait(async () => {
      await fixture.untilIdle();
      proxy.replies.hold = false;
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.untilIdle();
    });
    expect(took).toBeLessThan(SLACK + machineDelay());
  });

  describe('with its connection, permanently', () => {
    const clients = {
      'redis 6': () => fixture.connect({ reconnectStrategy: false }),
      'redis 5': () => fixture.connectWithRedis5(false),
    };

    it.each(['redis 6', 'redis 5'] as const)('(%s): the next wait is notified again, or polls', async (version) => {
      const client = await clients[version]();
      const { registry } = fixture.registry(client, { idleBetweenTries: 50 });
      await fixture.holdAsOther('key', LIFE);
      const first = registry.run('key', () => 'entered');
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
      expect(await first).toBe('entered');
      for (let round = 0; round < 3; round++) {
        await fixture.holdAsOther('key');
        const before = await fixture.calls('evalsha');
        const waiting = registry.run('key', () => 'entered');
        await until(async () => (await fixture.calls('evalsha')) > before);
        await fixture.releaseAsOther('key');
        const givenBack = performance.now();
        expect(await waiting).toBe('entered');
        expect(performance.now() - givenBack).toBeLessThan(SLACK + machineDelay());
      }
      await registry.close();
      await until(async () => (await fixture.listeners()).length === 0);
    });
  });
});
