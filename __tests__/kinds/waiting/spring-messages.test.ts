import { expect, it } from '@jest/globals';
import { SPRING_SCRIPTS } from '../../../lib/kinds/spring/kind';
import type { Script } from '../../../lib/redis/script';
import { SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { messagesOn } from '../../support/messages';
import { describePrivate } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { until } from '../../support/until';
import { RedisFixture } from './redis-fixture';

describePrivate("In the messages of Spring Integration's RedisLockRegistry", () => {
  const fixture = RedisFixture.install();

  /** All messages on the channels of the current test, and whether the lock that they name was held then. */
  const recordMessages = async () => {
    const subscriber: TestClient = await fixture.connect();
    const messages: [channel: string, message: string, isHeld: number][] = [];
    await subscriber.pSubscribe(
      `${fixture.registryKey}-channel*`,
      async (message, channel) => void messages.push([channel, message, await fixture.admin.exists(message)]),
    );
    return messages;
  };

  it("In the messages of Spring Integration's RedisLockRegistry, any other body wakes no waiter", async () => {
    const { registry } = await fixture.process();
    const { lock, channel } = fixture.namesOf('key');
    const { waiting } = await fixture.waitBehindOther(registry);
    const before = await fixture.refusals();
    for (const body of ['', 'key', fixture.namesOf('other').lock, `${lock} `, lock.toUpperCase(), '{"not":"ours"}']) {
      expect(await fixture.admin.publish(channel, body)).toBe(1);
    }
    await fixture.untilIdle();
    expect(await fixture.refusals()).toBe(before);
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
  });

  it.each([false, true])(
    "In the messages of Spring Integration's RedisLockRegistry, a release is published by every lock type that Spring can wait for, legacyChannel: %p",
    async (legacyChannel) => {
      const messages = await recordMessages();
      const names = fixture.namesOf('key');
      const channels = legacyChannel ? [names.channel, names.legacyChannel].sort() : [names.channel];
      for (const lockType of ['spin', 'pub-sub'] as const) {
        await (await fixture.process({ lockType, legacyChannel })).registry.run('key', () =>
          expect(messages).toEqual([]),
        );
        await until(() => messages.length >= channels.length);
        const published = channels.map((channel) => [channel, names.lock, 0]);
        expect(messages.splice(0).sort()).toEqual(published);
      }
    },
  );

  it("In the messages of Spring Integration's RedisLockRegistry, a lock that is left to pollers is no release, and is one afterwards if it is free", async () => {
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    const messages = await messagesOn(fixture.connect(), channel);
    const run = ({ source }: Script, ...args: string[]) =>
      fixture.admin.eval(source, { keys: [lock], arguments: args });
    const { LEAVE, NOTIFY, leftToPollers } = SPRING_SCRIPTS;
    await fixture.admin.set(lock, 'me:1');
    expect(await run(NOTIFY, legacyChannel)).toBe(0);
    expect(await run(LEAVE, 'me:1', 'DEL', legacyChannel)).toEqual([1, 1]);
    expect(await run(NOTIFY, legacyChannel)).toBe(1);
    await until(() => messages.length > 1);
    expect(messages).toEqual([leftToPollers, lock]);
  });

  it("In the messages of Spring Integration's RedisLockRegistry, the waiters of other locks do not learn that it is left to pollers", async () => {
    const { lock, legacyChannel } = fixture.namesOf('key');
    const messages = await messagesOn(fixture.connect(), legacyChannel);
    await fixture.admin.set(lock, 'me:1');
    const { LEAVE, NOTIFY } = SPRING_SCRIPTS;
    const run = ({ source }: Script, ...args: string[]) =>
      fixture.admin.eval(source, { keys: [lock], arguments: [...args, legacyChannel, 'too'] });
    await run(LEAVE, 'me:1', 'DEL');
    await run(NOTIFY);
    await until(() => messages.includes(lock));
    expect(messages).toEqual([lock]);
  });

  it("In the messages of Spring Integration's RedisLockRegistry, those that listen on both channels are counted", async () => {
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    await (await fixture.connect()).subscribe([channel, legacyChannel], () => undefined);
    await fixture.admin.set(lock, 'me:1');
    const options = { keys: [lock], arguments: ['me:1', 'DEL', legacyChannel, 'too'] };
    expect(await fixture.admin.eval(SPRING_SCRIPTS.RELEASE.source, options)).toEqual([1, 2]);
  });

  it("In the messages of Spring Integration's RedisLockRegistry, those that listen for all locks count as one, beside the own process", async () => {
    const { lock, legacyChannel } = fixture.namesOf('key');
    for (let i = 0; i < 5; i++) await (await fixture.connect()).subscribe(legacyChannel, () => undefined);
    await fixture.admin.set(lock, 'me:1');
    const options = { keys: [lock], arguments: ['me:1', 'DEL', legacyChannel, 'too'] };
    expect(await fixture.admin.eval(SPRING_SCRIPTS.RELEASE.source, options)).toEqual([1, 2]);
  });

  it("In the messages of Spring Integration's RedisLockRegistry, a message on the channel of older versions wakes only the waiters of its lock, with `legacyChannel`", async () => {
    const { registry } = await fixture.process({ legacyChannel: true });
    const { lock, channel, legacyChannel } = fixture.namesOf('key');
    const { waiting } = await fixture.waitBehindOther(registry, 2);
    expect(await fixture.channels()).toEqual([legacyChannel, channel].sort());
    const before = await fixture.refusals();
    await fixture.admin.publish(legacyChannel, fixture.namesOf('other').lock);
    await fixture.untilIdle();
    expect(await fixture.refusals()).toBe(before);
    // The waiter enters without a poll.
    await fixture.admin.unlink(lock);
    const published = performance.now();
    expect(await fixture.admin.publish(legacyChannel, lock)).toBe(1);
    expect(await waiting).toBe('entered');
    expect(performance.now() - published).toBeLessThan(SLACK + machineDelay());
  });
});
