import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { onDuplicate } from './duplicates';
import { RedisFixture } from './redis-fixture';

/** ms that a channel stays subscribed when nobody waits any more. */
const LINGER = 1_000;

describePrivate('The pub/sub connection of a registry', () => {
  const fixture = RedisFixture.install();

  it('is not made as long as nobody has to wait for another process', async () => {
    const client = await fixture.connect();
    const { registry } = fixture.registry(client);
    const before = await fixture.connections();
    await fixture.holdAsOther('held');
    for (let i = 0; i < 20; i++) await registry.run(`key-${i}`, (lease) => lease.renew());
    expect(await registry.obtain('held').tryLock()).toBeNull();
    // Callers of one process wait for each other without it.
    await Promise.all(Array.from({ length: 20 }, () => registry.run('shared', () => undefined)));
    expect(await fixture.connections()).toBe(before);
    expect(await fixture.listeners()).toEqual([]);
    await registry.close();
    expect(await fixture.connections()).toBe(before);
  });

  it('is made on the first contended wait, and is one however many keys and callers there are', async () => {
    const { registry, warnings } = await fixture.process();
    const before = await fixture.connections();
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
    for (const key of keys) await fixture.holdAsOther(key);
    const callers = keys.flatMap((key) => [1, 2, 3].map(() => registry.run(key, () => undefined)));
    await until(async () => (await fixture.channels()).length === keys.length);
    expect(await fixture.channels()).toEqual(keys.map((key) => fixture.namesOf(key).channel).sort());
    expect(await fixture.listeners()).toHaveLength(1);
    expect(await fixture.connections()).toBe(before + 1);
    for (const key of keys) await fixture.releaseAsOther(key);
    await Promise.all(callers);
    expect(await fixture.connections()).toBe(before + 1);
    expect(warnings).toEqual([]);
  });

  it('sends one request for a wake-up, however many local callers wait for the key', async () => {
    const { registry } = await fixture.process();
    await fixture.holdAsOther('key');
    const callers = Array.from({ length: 100 }, () => registry.run('key', () => undefined));
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.untilIdle();
    const before = await fixture.requests();
    const { lock, channel } = fixture.namesOf('key');
    for (let told = 1; told <= 3; told++) {
      expect(await fixture.admin.publish(channel, lock)).toBe(1); // a hint that comes to nothing
      await until(async () => (await fixture.requests()) === before + told);
      await fixture.untilIdle();
      expect(await fixture.requests()).toBe(before + told);
    }
    await fixture.releaseAsOther('key');
    await Promise.all(callers);
  });

  it('keeps a channel for about a second after the last wait, and is told nothing anew by a wait in between', async () => {
    const { registry } = await fixture.process();
    const wait = async () => {
      await fixture.holdAsOther('key');
      const waiting = registry.run('key', () => undefined);
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.untilIdle();
      await fixture.releaseAsOther('key');
      await waiting;
    };
    await wait();
    const subscribed = await fixture.calls('subscribe');
    await wait();
    const ended = performance.now();
    expect(await fixture.calls('subscribe')).toBe(subscribed);
    expect(await fixture.channels()).toHaveLength(1);
    await until(async () => (await fixture.channels()).length === 0, { within: LINGER + SLACK });
    expect(performance.now() - ended).toBeGreaterThan(LINGER - 100);
    await wait();
    expect(await fixture.calls('subscribe')).toBe(subscribed + 1);
  });

  it('counts who listens: a channel that two keys share stays for the second', async () => {
    const { registry } = await fixture.process({ legacyChannel: true });
    await Promise.all(['one', 'two'].map((key) => fixture.holdAsOther(key)));
    const one = registry.run('one', () => undefined);
    const two = registry.run('two', () => undefined);
    const [names, others] = [fixture.namesOf('one'), fixture.namesOf('two')];
    await until(async () => (await fixture.channels()).length === 3);
    await fixture.untilIdle();
    await fixture.releaseAsOther('one');
    await one;
    await until(async () => !(await fixture.channels()).includes(names.channel), { within: LINGER + SLACK });
    expect(await fixture.channels()).toEqual([names.legacyChannel, others.channel].sort());
    await fixture.admin.del(others.lock);
    await fixture.admin.publish(others.legacyChannel, others.lock);
    await two;
    await until(async () => (await fixture.channels()).length === 0, { within: LINGER + SLACK });
  });

  it.each(['while somebody waits', 'while a channel lingers'])('leaves nothing behind when closed %s', async (when) => {
    const { registry } = await fixture.process();
    await Promise.all(['one', 'two'].map((key) => fixture.holdAsOther(key)));
    const waiting = ['one', 'two'].map((key) => registry.obtain(key).lock());
    const outcomes = Promise.allSettled(waiting);
    await until(async () => (await fixture.channels()).length === 2);
    if (when === 'while a channel lingers') {
      for (const key of ['one', 'two']) await fixture.releaseAsOther(key);
      for (const lease of await Promise.all(waiting)) await lease.unlock();
      expect(await fixture.channels()).toHaveLength(2);
    }
    await registry.close();
    for (const outcome of await outcomes) {
      if (when === 'while somebody waits') {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'RegistryClosedError' } });
      } else {
        expect(outcome.status).toBe('fulfilled');
      }
    }
    await until(async () => (await fixture.listeners()).length === 0);
    expect(await fixture.channels()).toEqual([]);
  });

  it('is closed also while it is being made, and comes to nothing', async () => {
    const { proxy, client } = await fixture.proxied();
    const { registry, warnings } = fixture.registry(client);
    await fixture.holdAsOther('key');
    // It is connected, and the greeting is not answered.
    onDuplicate(client, () => {
      proxy.replies.hold = true;
    });
    const before = proxy.connections;
    const rejected = expect(registry.obtain('key').lock()).rejects.toMatchObject({ name: 'RegistryClosedError' });
    await until(() => proxy.connections === before + 1);
    await registry.close();
    await rejected;
    proxy.replies.hold = false;
    await until(() => proxy.open === 1);
    expect(await fixture.listeners()).toEqual([]);
    expect(proxy.connections).toBe(before + 1);
    expect(warnings).toEqual([]);
  });

  it('does not try to connect any more when it was closed', async () => {
    const { proxy, client } = await fixture.proxied();
    const { registry, warnings } = fixture.registry(client);
    await fixture.holdAsOther('key');
    proxy.refuse();
    const rejected = expect(registry.obtain('key').lock()).rejects.toMatchObject({ name: 'RegistryClosedError' });
    await fixture.untilIdle();
    await registry.close();
    await rejected;
    const before = proxy.connections;
    await proxy.accept();
    await fixture.untilIdle(); // its client tried again every 5 ms
    expect(proxy.connections).toBe(before);
    expect(warnings).toEqual([]);
  });

  it('lives through silence, though its client was made with a socketTimeout, and has an error listener', async () => {
    const { registry, warnings } = await fixture.process();
    const impatient = await fixture.connect();
    const made: TestClient[] = [];
    onDuplicate(impatient, (copy) => made.push(copy));
    // Too late for itself, else it would be idle for too long too; in time for its duplicate.
    Object.assign(impatient.options?.socket ?? {}, { socketTimeout: 100 });
    const waiters = fixture.registry(impatient);
    const lease = await registry.obtain('key').lock();
    const waiting = waiters.registry.run('key', () => 'entered');
    await until(async () => (await fixture.channels()).length === 1);
    const [connection] = await fixture.listeners();
    const idleSince = performance.now();
    await until(() => performance.now() - idleSince > 300);
    expect(await fixture.listeners()).toEqual([connection]);
    expect(made[0]?.listenerCount('error')).toBeGreaterThan(0);
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect([...warnings, ...waiters.warnings]).toEqual([]);
  });

  it('is resubscribed when it is killed, and whoever waits looks again', async () => {
    const { registry, warnings } = await fixture.process();
    await fixture.holdAsOther('key');
    const waiting = registry.run('key', () => 'entered');
    for (let round = 0; round < 3; round++) {
      await until(async () => (await fixture.channels()).length === 1);
      await fixture.untilIdle();
      const before = await fixture.calls('evalsha');
      expect(await fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])).toBe(1);
      await until(async () => (await fixture.calls('evalsha')) > before);
    }
    await until(async () => (await fixture.channels()).length === 1);
    await fixture.releaseAsOther('key');
    expect(await waiting).toBe('entered');
    expect(warnings).toEqual([]);
  });
});
