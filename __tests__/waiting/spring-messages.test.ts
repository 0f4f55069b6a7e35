import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate("In the messages of Spring Integration's RedisLockRegistry", () => {
  const fixture = RedisFixture.install();

  /** Everything that is told on the channels of the current test. */
  const eavesdrop = async (): Promise<[string, string][]> => {
    const ear: TestClient = await fixture.connect();
    const heard: [string, string][] = [];
    await ear.pSubscribe(`${fixture.registryKey}-channel*`, (message, channel) => void heard.push([channel, message]));
    return heard;
  };

  it('the name of the lock on its own channel wakes whoever waits for it', async () => {
    const { registry } = await fixture.process();
    const { lock, channel } = fixture.namesOf('key');
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    await fixture.admin.unlink(lock);
    const told = performance.now();
    expect(await fixture.admin.publish(channel, lock)).toBe(1);
    expect(await waiting).toBe('entered');
    expect(performance.now() - told).toBeLessThan(SLACK);
  });

  it('another body wakes nobody, whatever it is', async () => {
    const { registry } = await fixture.process();
    const { lock, channel } = fixture.namesOf('key');
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    const before = await fixture.requests();
    for (const body of ['', 'key', fixture.namesOf('other').lock, `${lock} `, lock.toUpperCase(), '{"not":"ours"}']) {
      expect(await fixture.admin.publish(channel, body)).toBe(1);
    }
    await fixture.untilIdle();
    expect(await fixture.requests()).toBe(before);
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
  });

  it('a release is told in, on the one channel, by every lock type that Spring can wait for', async () => {
    const heard = await eavesdrop();
    const { lock, channel } = fixture.namesOf('key');
    for (const lockType of ['spin', 'pub-sub'] as const) {
      await (await fixture.process({ lockType })).registry.run('key', () => undefined);
    }
    await until(() => heard.length >= 2);
    expect(heard).toEqual([
      [channel, lock],
      [channel, lock],
    ]);
  });

  it('a release by a spin lock wakes whoever waits with pub-sub', async () => {
    const { registry: spinning } = await fixture.process({ lockType: 'spin' });
    const { registry } = await fixture.process();
    const lease = await spinning.obtain('key').lock();
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    const released = performance.now();
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect(performance.now() - released).toBeLessThan(SLACK);
  });

  it('older versions are told on the channel that they listen on, with `legacyChannel`', async () => {
    const heard = await eavesdrop();
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    for (const lockType of ['spin', 'pub-sub'] as const) {
      const { registry } = await fixture.process({ lockType, legacyChannel: true });
      await registry.run('key', () => undefined);
    }
    await until(() => heard.length >= 4);
    expect(heard.map(([, body]) => body)).toEqual([lock, lock, lock, lock]);
    expect(new Set(heard.map(([name]) => name))).toEqual(new Set([channel, legacyChannel]));
  });

  it('older versions are heard on theirs, with `legacyChannel`, and only about the lock that is waited for', async () => {
    const { registry } = await fixture.process({ legacyChannel: true });
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 2);
    expect(await fixture.channels()).toEqual([legacyChannel, channel].sort());
    await fixture.untilIdle();
    const before = await fixture.requests();
    await fixture.admin.publish(legacyChannel, fixture.namesOf('other').lock);
    await fixture.untilIdle();
    expect(await fixture.requests()).toBe(before);
    await fixture.admin.unlink(lock);
    const told = performance.now();
    expect(await fixture.admin.publish(legacyChannel, lock)).toBe(1);
    expect(await waiting).toBe('entered');
    expect(performance.now() - told).toBeLessThan(SLACK);
  });

  it('older versions go unheard without `legacyChannel`', async () => {
    const { registry } = await fixture.process();
    const { lock, legacyChannel } = fixture.namesOf('key');
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    expect(await fixture.admin.publish(legacyChannel, lock)).toBe(0);
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
  });

  it('nothing is told by whoever has no rights on channels: it releases all the same, and others look by themselves', async () => {
    const heard = await eavesdrop();
    const mute = await fixture.connect(await fixture.user('resetchannels'));
    const { registry: muted, warnings } = fixture.registry(mute, { handOver: 1 });
    const { registry } = await fixture.process({ idleBetweenTries: 30 });
    const lease = await muted.obtain('key').lock();
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    const released = performance.now();
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect(performance.now() - released).toBeLessThan(10 * 30 + SLACK);
    // Hand-over too, at the end of a slice and within it.
    await Promise.all(Array.from({ length: 20 }, () => muted.run('key', () => undefined)));
    expect(await fixture.isHeld('key')).toBe(false);
    expect(heard.length).toBeLessThanOrEqual(1); // that of `waiting`
    expect(warnings).toEqual([]);
  });
});
