import { describe, expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { withLag } from './lag';
import { RedisFixture } from './redis-fixture';

/** ms after the end of the key's life by which everybody who was not told has looked again (P9). */
const LATE = 100;

/** ms; what is left of the holder's key when it is given back unheard. */
const LIFE = 600;

describePrivate('A wake-up that is lost', () => {
  const fixture = RedisFixture.install();
  const keys = Array.from({ length: 5 }, (_, i) => `key-${i}`);

  /** Waits for keys of foreign holders; answers with the ms after the end of their lives at which the last one was had. */
  const lateness = async (wait: (key: string) => Promise<unknown>, meanwhile: () => Promise<unknown>) => {
    const { result, lag } = await withLag(fixture.admin, async () => {
      await Promise.all(keys.map((key) => fixture.holdAsOther(key, LIFE)));
      const heldAt = performance.now();
      const had = keys.map(async (key) => {
        await wait(key);
        return performance.now() - heldAt - LIFE;
      });
      await meanwhile();
      return Math.max(...(await Promise.all(had)));
    });
    return { late: result, allowed: LATE + lag };
  };

  it.each(['SUBSCRIBE', 'channels'])('since %s is denied: waiting polls, with one warning (P9)', async (what) => {
    const rule = what === 'channels' ? 'resetchannels' : '-subscribe';
    const { registry, warnings } = fixture.registry(await fixture.connect(await fixture.user(rule)), {
      idleBetweenTries: 50,
    });
    const { late, allowed } = await lateness(
      (key) => registry.run(key, () => undefined),
      () => until(() => warnings.length > 0),
    );
    expect(late).toBeGreaterThan(-50);
    expect(late).toBeLessThanOrEqual(allowed);
    // What is given back early is had at the next look.
    await fixture.holdAsOther('early');
    const waiting = registry.run('early', () => 'entered');
    await fixture.releaseAsOther('early');
    const givenBack = performance.now();
    expect(await waiting).toBe('entered');
    expect(performance.now() - givenBack).toBeLessThan(SLACK);
    expect(warnings).toMatchObject([{ code: 'SUBSCRIBER_UNAVAILABLE', message: expect.stringMatching(/NOPERM/) }]);
    expect(await fixture.channels()).toEqual([]);
    await registry.close();
    expect(await fixture.listeners()).toEqual([]);
  });

  it('in CLIENT KILL TYPE pubsub, though the keys stay: nobody waits beyond their lives (P9)', async () => {
    const { registry, warnings } = await fixture.process();
    const { late, allowed } = await lateness(
      (key) => registry.run(key, () => undefined),
      async () => {
        await until(async () => (await fixture.channels()).length === keys.length);
        await fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
      },
    );
    expect(late).toBeGreaterThan(-50);
    expect(late).toBeLessThanOrEqual(allowed);
    expect(warnings).toEqual([]);
  });

  it('in CLIENT KILL TYPE pubsub, just when the keys are given back: had as soon as it is resubscribed', async () => {
    const { registry } = await fixture.process();
    let givenBack = 0;
    const { result, lag } = await withLag(fixture.admin, async () => {
      await Promise.all(keys.map((key) => fixture.holdAsOther(key)));
      const had = keys.map((key) => registry.run(key, () => undefined));
      await until(async () => (await fixture.channels()).length === keys.length);
      await fixture.untilIdle();
      givenBack = performance.now();
      const killing = fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub']);
      await Promise.all([killing, ...keys.map((key) => fixture.releaseAsOther(key))]);
      await Promise.all(had);
      return performance.now() - givenBack;
    });
    expect(result).toBeLessThanOrEqual(LATE + lag);
  });

  it('by a network that drops it: nobody waits longer than what the key had to live (P9)', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry, warnings } = fixture.registry(await fixture.connect(), { subscriber });
    const { late, allowed } = await lateness(
      (key) => registry.run(key, () => undefined),
      async () => {
        await until(async () => (await fixture.channels()).length === keys.length);
        await fixture.untilIdle();
        proxy.blackHole = true;
        await Promise.all(keys.map((key) => fixture.releaseAsOther(key)));
      },
    );
    expect(late).toBeGreaterThan(-50); // nobody was told
    expect(late).toBeLessThanOrEqual(allowed);
    expect(warnings).toEqual([]);
    proxy.blackHole = false;
    proxy.reset();
  });

  it('by a network that drops it: nobody waits longer than ten idle intervals either, however long the key lives', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber, idleBetweenTries: 40 });
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => undefined);
    await until(async () => (await fixture.channels()).length === 1);
    proxy.blackHole = true;
    await fixture.releaseAsOther('key');
    const givenBack = performance.now();
    await waiting;
    expect(performance.now() - givenBack).toBeLessThan(400 + SLACK);
    proxy.blackHole = false;
    proxy.reset();
  });

  it('between an unsubscribe in flight and a subscribe: none is', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber });
    const wait = async (whenAsleep: () => Promise<unknown>) => {
      await fixture.holdAsOther('key');
      const waiting = registry.run('key', () => undefined);
      await whenAsleep();
      await fixture.releaseAsOther('key');
      const givenBack = performance.now();
      await waiting;
      return performance.now() - givenBack;
    };
    await wait(() => fixture.untilIdle());
    // The channel lingers; its unsubscribe will be carried out, and not be answered.
    proxy.replies.hold = true;
    await until(async () => (await fixture.channels()).length === 0);
    const took = await wait(async () => {
      await fixture.untilIdle();
      proxy.replies.hold = false;
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.untilIdle();
    });
    expect(took).toBeLessThan(SLACK);
  });

  describe('with its connection, for good', () => {
    const clients = {
      'redis 6': () => fixture.connect({ reconnectStrategy: false }),
      'redis 5': () => fixture.connectWithRedis5(false),
    };

    it.each(['redis 6', 'redis 5'] as const)('(%s): the next one is heard again, or is polled for', async (version) => {
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
        expect(performance.now() - givenBack).toBeLessThan(SLACK);
      }
      await registry.close();
      await until(async () => (await fixture.listeners()).length === 0);
    });
  });
});
