import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { onDuplicate } from './duplicates';
import { Stage } from './stage';

/** ms that a channel stays subscribed when nobody waits any more. */
const LINGER = 1_000;

describePrivate('The pub/sub connection of a registry', () => {
  const stage = Stage.set();

  it('is not made as long as nobody has to wait for another process', async () => {
    const client = await stage.connect();
    const { registry } = stage.registry(client);
    const before = await stage.connections();
    await stage.hold('held');
    for (let i = 0; i < 20; i++) await registry.run(`key-${i}`, (lease) => lease.renew());
    expect(await registry.obtain('held').tryLock()).toBeNull();
    // Callers of one process wait for each other without it.
    await Promise.all(Array.from({ length: 20 }, () => registry.run('shared', () => undefined)));
    expect(await stage.connections()).toBe(before);
    expect(await stage.listeners()).toEqual([]);
    await registry.close();
    expect(await stage.connections()).toBe(before);
  });

  it('is made on the first contended wait, and is one however many keys and callers there are', async () => {
    const { registry, warnings } = await stage.process();
    const before = await stage.connections();
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
    for (const key of keys) await stage.hold(key);
    const callers = keys.flatMap((key) => [1, 2, 3].map(() => registry.run(key, () => undefined)));
    await until(async () => (await stage.channels()).length === keys.length);
    expect(await stage.channels()).toEqual(keys.map((key) => stage.namesOf(key).channel).sort());
    expect(await stage.listeners()).toHaveLength(1);
    expect(await stage.connections()).toBe(before + 1);
    for (const key of keys) await stage.giveBack(key);
    await Promise.all(callers);
    expect(await stage.connections()).toBe(before + 1);
    expect(warnings).toEqual([]);
  });

  it('sends one request for a wake-up, however many local callers wait for the key', async () => {
    const { registry } = await stage.process();
    await stage.hold('key');
    const callers = Array.from({ length: 100 }, () => registry.run('key', () => undefined));
    await until(async () => (await stage.channels()).length === 1);
    await stage.quiet();
    const before = await stage.requests();
    const { lock, channel } = stage.namesOf('key');
    for (let told = 1; told <= 3; told++) {
      expect(await stage.admin.publish(channel, lock)).toBe(1); // a hint that comes to nothing
      await until(async () => (await stage.requests()) === before + told);
      await stage.quiet();
      expect(await stage.requests()).toBe(before + told);
    }
    await stage.giveBack('key');
    await Promise.all(callers);
  });

  it('keeps a channel for about a second after the last wait, and is told nothing anew by a wait in between', async () => {
    const { registry } = await stage.process();
    const wait = async () => {
      await stage.hold('key');
      const waiting = registry.run('key', () => undefined);
      await until(async () => (await stage.channels()).length === 1);
      await stage.quiet();
      await stage.giveBack('key');
      await waiting;
    };
    await wait();
    const subscribed = await stage.calls('subscribe');
    await wait();
    const ended = performance.now();
    expect(await stage.calls('subscribe')).toBe(subscribed);
    expect(await stage.channels()).toHaveLength(1);
    await until(async () => (await stage.channels()).length === 0, { within: LINGER + SLACK });
    expect(performance.now() - ended).toBeGreaterThan(LINGER - 100);
    await wait();
    expect(await stage.calls('subscribe')).toBe(subscribed + 1);
  });

  it('counts who listens: a channel that two keys share stays for the second', async () => {
    const { registry } = await stage.process({ legacyChannel: true });
    await Promise.all(['one', 'two'].map((key) => stage.hold(key)));
    const one = registry.run('one', () => undefined);
    const two = registry.run('two', () => undefined);
    const [names, others] = [stage.namesOf('one'), stage.namesOf('two')];
    await until(async () => (await stage.channels()).length === 3);
    await stage.quiet();
    await stage.giveBack('one');
    await one;
    await until(async () => !(await stage.channels()).includes(names.channel), { within: LINGER + SLACK });
    expect(await stage.channels()).toEqual([names.legacyChannel, others.channel].sort());
    await stage.admin.del(others.lock);
    await stage.admin.publish(others.legacyChannel, others.lock);
    await two;
    await until(async () => (await stage.channels()).length === 0, { within: LINGER + SLACK });
  });

  it.each(['while somebody waits', 'while a channel lingers'])('leaves nothing behind when closed %s', async (when) => {
    const { registry } = await stage.process();
    await Promise.all(['one', 'two'].map((key) => stage.hold(key)));
    const waiting = ['one', 'two'].map((key) => registry.obtain(key).lock());
    const outcomes = Promise.allSettled(waiting);
    await until(async () => (await stage.channels()).length === 2);
    if (when === 'while a channel lingers') {
      for (const key of ['one', 'two']) await stage.giveBack(key);
      for (const lease of await Promise.all(waiting)) await lease.unlock();
      expect(await stage.channels()).toHaveLength(2);
    }
    await registry.close();
    for (const outcome of await outcomes) {
      if (when === 'while somebody waits') {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'RegistryClosedError' } });
      } else {
        expect(outcome.status).toBe('fulfilled');
      }
    }
    await until(async () => (await stage.listeners()).length === 0);
    expect(await stage.channels()).toEqual([]);
  });

  it('is closed also while it is being made, and comes to nothing', async () => {
    const { proxy, client } = await stage.proxied();
    const { registry, warnings } = stage.registry(client);
    await stage.hold('key');
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
    expect(await stage.listeners()).toEqual([]);
    expect(proxy.connections).toBe(before + 1);
    expect(warnings).toEqual([]);
  });

  it('does not try to connect any more when it was closed', async () => {
    const { proxy, client } = await stage.proxied();
    const { registry, warnings } = stage.registry(client);
    await stage.hold('key');
    proxy.refuse();
    const rejected = expect(registry.obtain('key').lock()).rejects.toMatchObject({ name: 'RegistryClosedError' });
    await stage.quiet();
    await registry.close();
    await rejected;
    const before = proxy.connections;
    await proxy.accept();
    await stage.quiet(); // its client tried again every 5 ms
    expect(proxy.connections).toBe(before);
    expect(warnings).toEqual([]);
  });

  it('lives through silence, though its client was made with a socketTimeout, and has an error listener', async () => {
    const { registry, warnings } = await stage.process();
    const impatient = await stage.connect();
    const made: TestClient[] = [];
    onDuplicate(impatient, (copy) => made.push(copy));
    // Too late for itself, else it would be idle for too long too; in time for its duplicate.
    Object.assign(impatient.options?.socket ?? {}, { socketTimeout: 100 });
    const waiters = stage.registry(impatient);
    const lease = await registry.obtain('key').lock();
    const waiting = waiters.registry.run('key', () => 'entered');
    await until(async () => (await stage.channels()).length === 1);
    const [connection] = await stage.listeners();
    const idleSince = performance.now();
    await until(() => performance.now() - idleSince > 300);
    expect(await stage.listeners()).toEqual([connection]);
    expect(made[0]?.listenerCount('error')).toBeGreaterThan(0);
    await lease.unlock();
    expect(await waiting).toBe('entered');
    expect([...warnings, ...waiters.warnings]).toEqual([]);
  });

  it('is resubscribed when it is killed, and whoever waits looks again', async () => {
    const { registry, warnings } = await stage.process();
    await stage.hold('key');
    const waiting = registry.run('key', () => 'entered');
    for (let round = 0; round < 3; round++) {
      await until(async () => (await stage.channels()).length === 1);
      await stage.quiet();
      const before = await stage.calls('evalsha');
      expect(await stage.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub'])).toBe(1);
      await until(async () => (await stage.calls('evalsha')) > before);
    }
    await until(async () => (await stage.channels()).length === 1);
    await stage.giveBack('key');
    expect(await waiting).toBe('entered');
    expect(warnings).toEqual([]);
  });
});
