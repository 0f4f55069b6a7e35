import { describe, expect, it } from '@jest/globals';
import type { LockWarning, RedisLockRegistry } from '../../../lib';
import { SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { until } from '../../support/until';
import { listenersOf, RedisFixture } from './redis-fixture';

/** ms after the expiry of the key within which every waiter without a notification has polled (P9). */
const LATE = 100;

/** ms; ttl of the holder's key. */
const LIFE = 600;

describePrivate('A notification that is lost', () => {
  const fixture = RedisFixture.install();
  const keys = Array.from({ length: 5 }, (_, i) => `key-${i}`);

  it('A notification that is lost by CLIENT KILL TYPE pubsub, while the keys are held: no waiter waits beyond their expiry (P9)', async () => {
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

  it('A notification that is lost by the network: no waiter waits longer than ten poll intervals, for any ttl of the key', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber, idleBetweenTries: 40 });
    const { waiting } = await fixture.waitBehindOther(registry);
    proxy.blackHole = true;
    await fixture.releaseAsOther('key');
    const givenBack = performance.now();
    await waiting;
    expect(performance.now() - givenBack).toBeLessThan(400 + SLACK + machineDelay());
    proxy.blackHole = false;
    proxy.reset();
  });

  it('A notification that is lost between an unsubscribe in flight and a subscribe does not occur', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber });
    const wait = async (whenWaiting: () => Promise<unknown>) => {
      await fixture.holdAsOther('key');
      const waiting = registry.run('key', () => 'entered');
      await whenWaiting();
      await fixture.expectEntryAfterRelease(waiting);
    };
    await wait(() => fixture.untilIdle());
    // The channel lingers; its unsubscribe is executed, but its reply is held back.
    proxy.replies.hold = true;
    await until(async () => (await fixture.channels()).length === 0);
    await wait(async () => {
      await fixture.untilIdle();
      proxy.replies.hold = false;
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.untilIdle();
    });
  });

  it('A connection that is lost with an unsubscribe in flight leaves no channel subscribed', async () => {
    const { proxy, client: subscriber } = await fixture.proxied();
    const { registry } = fixture.registry(await fixture.connect(), { subscriber });
    await fixture.expectEntryAfterRelease((await fixture.waitBehindOther(registry)).waiting);
    // The channel lingers; its unsubscribe is executed, but its reply is lost: the client subscribes it again.
    proxy.replies.swallow = true;
    await until(async () => (await fixture.channels()).length === 0);
    proxy.replies.swallow = false;
    proxy.reset();
    await new Promise((resolve) => subscriber.once('ready', resolve));
    await until(async () => (await fixture.channels()).length === 0);
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
        await fixture.expectEntryAfterRelease(waiting);
      }
      await registry.close();
      await until(async () => (await fixture.listeners()).length === 0);
    });
  });
});

interface Deaf {
  readonly registry: RedisLockRegistry;
  readonly warnings: readonly LockWarning[];
  /** What has to be so in the end. */
  readonly after?: () => unknown;
}

describePrivate('A registry that cannot receive messages', () => {
  const fixture = RedisFixture.install();
  const options = { idleBetweenTries: 20, commandTimeout: 1_500 };

  /** The port is closed when the connection for messages is to be opened. */
  const closedPort = async (version: 5 | 6, reconnectStrategy: number | false): Promise<Deaf> => {
    const proxy = await fixture.redis.proxy();
    const client =
      version === 6
        ? await fixture.connect({ reconnectStrategy }, proxy.address)
        : await fixture.connectWithRedis5(reconnectStrategy, proxy.address);
    proxy.refuse();
    const after = async () => {
      const before = proxy.connections;
      await proxy.accept();
      await fixture.untilIdle();
      expect(proxy.connections).toBe(before);
    };
    return { ...fixture.registry(client, options), after };
  };

  const connectionLimit = async (): Promise<Deaf> => {
    const locks = fixture.registry(await fixture.connect(), options);
    const { maxclients = '' } = await fixture.admin.configGet('maxclients');
    await fixture.admin.configSet('maxclients', String((await fixture.admin.clientList()).length));
    return { ...locks, after: () => fixture.admin.configSet('maxclients', maxclients) };
  };

  const withSubscriber = async (subscriber: TestClient): Promise<Deaf> => {
    const before = listenersOf(subscriber);
    const locks = fixture.registry(await fixture.connect(), { ...options, subscriber });
    return { ...locks, after: () => expect(listenersOf(subscriber)).toEqual(before) };
  };

  const ofUser = async (rule: string) => fixture.connect(await fixture.user(rule));

  const reasons: Record<string, () => Promise<Deaf>> = {
    'its pool cannot subscribe': async () => fixture.registry(await fixture.connectPool(), options),
    'the port is closed (redis 6, which keeps trying)': () => closedPort(6, 5),
    'the port is closed (redis 5, which gives up)': () => closedPort(5, false),
    'the server is at its connection limit': connectionLimit,
    // It does not answer, or it refuses: the warning comes after the command timeout, or at once.
    'the subscriber of the application is not connected': async () => {
      const subscriber = await fixture.connect();
      subscriber.destroy();
      return withSubscriber(subscriber);
    },
    'the subscriber of the application may not subscribe': async () => withSubscriber(await ofUser('-subscribe')),
    'SUBSCRIBE is denied': async () => fixture.registry(await ofUser('-subscribe'), options),
    'channels are denied': async () => fixture.registry(await ofUser('resetchannels'), options),
  };

  it.each(Object.keys(reasons))(
    'A registry that cannot receive messages since %s: polls, with one warning of each kind (P9)',
    async (why) => {
      const { registry, warnings, after } = await (reasons[why] as () => Promise<Deaf>)();
      try {
        for (const key of ['one', 'two']) {
          await fixture.holdAsOther(key);
          const waiting = registry.run(key, () => 'entered');
          await until(() => warnings.some(({ code }) => code === 'SUBSCRIBER_UNAVAILABLE'));
          await fixture.expectEntryAfterRelease(waiting, key);
        }
        await registry.close();
      } finally {
        await after?.();
      }
      const isRefused = why === 'channels are denied';
      expect(warnings.map(({ code }) => code).sort()).toEqual([
        ...(isRefused ? ['NOTIFICATION_REFUSED'] : []),
        'SUBSCRIBER_UNAVAILABLE',
      ]);
      if (why.endsWith('denied')) expect(String(warnings.map(({ message }) => message))).toMatch(/NOPERM/);
      if (why.includes('pool')) expect(warnings[0]?.message).toContain('`subscriber`');
      expect(await fixture.channels()).toEqual([]);
      expect(await fixture.listeners()).toEqual([]);
    },
  );
});
