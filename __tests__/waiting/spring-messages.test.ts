import { expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate("In the messages of Spring Integration's RedisLockRegistry", () => {
  const fixture = RedisFixture.install();

  /** All messages on the channels of the current test. */
  const recordMessages = async (): Promise<[string, string][]> => {
    const subscriber: TestClient = await fixture.connect();
    const messages: [string, string][] = [];
    await subscriber.pSubscribe(
      `${fixture.registryKey}-channel*`,
      (message, channel) => void messages.push([channel, message]),
    );
    return messages;
  };

  /** A waiter that sleeps, with this number of channels, while another owner holds the lock. */
  const waitBehindOther = async (registry: RedisLockRegistry, channels = 1) => {
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === channels);
    await fixture.untilIdle();
    return { waiting };
  };

  /** A release as by Spring: the waiter enters without a poll. */
  const expectToWake = async (channel: string, lock: string, waiting: Promise<string>) => {
    await fixture.admin.unlink(lock);
    const published = performance.now();
    expect(await fixture.admin.publish(channel, lock)).toBe(1);
    expect(await waiting).toBe('entered');
    expect(performance.now() - published).toBeLessThan(SLACK + machineDelay());
  };

  it('the name of a lock on its channel wakes its waiters', async () => {
    const { registry } = await fixture.process();
    const { lock, channel } = fixture.namesOf('key');
    const { waiting } = await waitBehindOther(registry);
    await expectToWake(channel, lock, waiting);
  });

  it('any other body wakes no waiter', async () => {
    const { registry } = await fixture.process();
    const { lock, channel } = fixture.namesOf('key');
    const { waiting } = await waitBehindOther(registry);
    const before = await fixture.requests();
    for (const body of ['', 'key', fixture.namesOf('other').lock, `${lock} `, lock.toUpperCase(), '{"not":"ours"}']) {
      expect(await fixture.admin.publish(channel, body)).toBe(1);
    }
    await fixture.untilIdle();
    expect(await fixture.requests()).toBe(before);
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
  });

  it('a release is published on one channel, by every lock type that Spring can wait for', async () => {
    const messages = await recordMessages();
    const { lock, channel } = fixture.namesOf('key');
    for (const lockType of ['spin', 'pub-sub'] as const) {
      await (await fixture.process({ lockType })).registry.run('key', () => undefined);
    }
    await until(() => messages.length >= 2);
    expect(messages).toEqual([
      [channel, lock],
      [channel, lock],
    ]);
  });

  it('a release by a spin lock wakes pub-sub waiters', async () => {
    const { registry: spinning } = await fixture.process({ lockType: 'spin' });
    const { registry } = await fixture.process();
    const lease = await spinning.obtain('key').lock();
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    const released = performance.now();
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect(performance.now() - released).toBeLessThan(SLACK + machineDelay());
  });

  it('a release is also published on the channel of older versions, with `legacyChannel`', async () => {
    const messages = await recordMessages();
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    for (const lockType of ['spin', 'pub-sub'] as const) {
      const { registry } = await fixture.process({ lockType, legacyChannel: true });
      await registry.run('key', () => undefined);
    }
    await until(() => messages.length >= 4);
    expect(messages.map(([, body]) => body)).toEqual([lock, lock, lock, lock]);
    expect(new Set(messages.map(([name]) => name))).toEqual(new Set([channel, legacyChannel]));
  });

  it('a message on the channel of older versions wakes only the waiters of its lock, with `legacyChannel`', async () => {
    const { registry } = await fixture.process({ legacyChannel: true });
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    const { waiting } = await waitBehindOther(registry, 2);
    expect(await fixture.channels()).toEqual([legacyChannel, channel].sort());
    const before = await fixture.requests();
    await fixture.admin.publish(legacyChannel, fixture.namesOf('other').lock);
    await fixture.untilIdle();
    expect(await fixture.requests()).toBe(before);
    await expectToWake(legacyChannel, lock, waiting);
  });

  it('the channel of older versions is not subscribed without `legacyChannel`', async () => {
    const { registry } = await fixture.process();
    const { lock, legacyChannel } = fixture.namesOf('key');
    const { waiting } = await waitBehindOther(registry);
    expect(await fixture.admin.publish(legacyChannel, lock)).toBe(0);
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
  });
});
