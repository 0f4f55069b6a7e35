import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { Stage } from './stage';

describePrivate("In the messages of Spring Integration's RedisLockRegistry", () => {
  const stage = Stage.set();

  /** Everything that is told on the channels of the current test. */
  const eavesdrop = async (): Promise<[string, string][]> => {
    const ear: TestClient = await stage.connect();
    const heard: [string, string][] = [];
    await ear.pSubscribe(`${stage.registryKey}-channel*`, (message, channel) => void heard.push([channel, message]));
    return heard;
  };

  it('the name of the lock on its own channel wakes whoever waits for it', async () => {
    const { registry } = await stage.process();
    const { lock, channel } = stage.namesOf('key');
    await stage.hold('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    await stage.quiet();
    await stage.admin.unlink(lock);
    const told = performance.now();
    expect(await stage.admin.publish(channel, lock)).toBe(1);
    expect(await waiting).toBe('entered');
    expect(performance.now() - told).toBeLessThan(SLACK);
  });

  it('another body wakes nobody, whatever it is', async () => {
    const { registry } = await stage.process();
    const { lock, channel } = stage.namesOf('key');
    await stage.hold('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    await stage.quiet();
    const before = await stage.requests();
    for (const body of ['', 'key', stage.namesOf('other').lock, `${lock} `, lock.toUpperCase(), '{"not":"ours"}']) {
      expect(await stage.admin.publish(channel, body)).toBe(1);
    }
    await stage.quiet();
    expect(await stage.requests()).toBe(before);
    await stage.giveBack('key');
    expect(await waiting).toBe('entered');
  });

  it('a release is told in, on the one channel, by every lock type that Spring can wait for', async () => {
    const heard = await eavesdrop();
    const { lock, channel } = stage.namesOf('key');
    for (const lockType of ['spin', 'pub-sub'] as const) {
      await (await stage.process({ lockType })).registry.run('key', () => undefined);
    }
    await until(() => heard.length >= 2);
    expect(heard).toEqual([
      [channel, lock],
      [channel, lock],
    ]);
  });

  it('a release by a spin lock wakes whoever waits with pub-sub', async () => {
    const { registry: spinning } = await stage.process({ lockType: 'spin' });
    const { registry } = await stage.process();
    const lease = await spinning.obtain('key').lock();
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    await stage.quiet();
    const released = performance.now();
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect(performance.now() - released).toBeLessThan(SLACK);
  });

  it('older versions are told on the channel that they listen on, with `legacyChannel`', async () => {
    const heard = await eavesdrop();
    const { lock, channel, legacyChannel } = stage.namesOf('key');
    for (const lockType of ['spin', 'pub-sub'] as const) {
      const { registry } = await stage.process({ lockType, legacyChannel: true });
      await registry.run('key', () => undefined);
    }
    await until(() => heard.length >= 4);
    expect(heard.map(([, body]) => body)).toEqual([lock, lock, lock, lock]);
    expect(new Set(heard.map(([name]) => name))).toEqual(new Set([channel, legacyChannel]));
  });

  it('older versions are heard on theirs, with `legacyChannel`, and only about the lock that is waited for', async () => {
    const { registry } = await stage.process({ legacyChannel: true });
    const { lock, channel, legacyChannel } = stage.namesOf('key');
    await stage.hold('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 2);
    expect(await stage.channels()).toEqual([legacyChannel, channel].sort());
    await stage.quiet();
    const before = await stage.requests();
    await stage.admin.publish(legacyChannel, stage.namesOf('other').lock);
    await stage.quiet();
    expect(await stage.requests()).toBe(before);
    await stage.admin.unlink(lock);
    const told = performance.now();
    expect(await stage.admin.publish(legacyChannel, lock)).toBe(1);
    expect(await waiting).toBe('entered');
    expect(performance.now() - told).toBeLessThan(SLACK);
  });

  it('older versions go unheard without `legacyChannel`', async () => {
    const { registry } = await stage.process();
    const { lock, legacyChannel } = stage.namesOf('key');
    await stage.hold('key');
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    expect(await stage.admin.publish(legacyChannel, lock)).toBe(0);
    await stage.giveBack('key');
    expect(await waiting).toBe('entered');
  });

  it('nothing is told by whoever has no rights on channels: it releases all the same, and others look by themselves', async () => {
    const heard = await eavesdrop();
    const mute = await stage.connect(await stage.user('resetchannels'));
    const { registry: muted, warnings } = stage.registry(mute, { handOver: 1 });
    const { registry } = await stage.process({ idleBetweenTries: 30 });
    const lease = await muted.obtain('key').lock();
    const waiting = registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    const released = performance.now();
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect(performance.now() - released).toBeLessThan(10 * 30 + SLACK);
    // Hand-over too, at the end of a slice and within it.
    await Promise.all(Array.from({ length: 20 }, () => muted.run('key', () => undefined)));
    expect(await stage.isHeld('key')).toBe(false);
    expect(heard.length).toBeLessThanOrEqual(1); // that of `waiting`
    expect(warnings).toEqual([]);
  });
});
