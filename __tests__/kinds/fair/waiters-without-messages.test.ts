import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../../lib';
import type { FaultyProxy } from '../../../support/proxy';
import { LOCK_TYPES } from '../../support/lock-types';
import { machineDelay } from '../../support/machine-delay';
import { connectTo, describePrivate, PrivateRedis } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { untilQuiet } from '../../support/server-load';
import { MUTE } from '../../support/since';
import { createRegistry, elapsed } from '../../support/test-registry';
import { until } from '../../support/until';
import { FairFixture } from './fair-fixture';
import { KEY } from './worker';

/** ms; the first poll that is not answered by a message comes within a second, and a grant that runs out takes another. */
const SOON = 3_000;

// The connection of a waiter for messages is dead, and no reset says so.
describePrivate('a process to which messages have stopped to come, while others contend', () => {
  const fixture = FairFixture.install();

  /** Two processes that take the lock in turn, until `stop`. */
  async function contend(): Promise<() => Promise<void>> {
    let isOver = false;
    const others = await Promise.all([fixture.process(), fixture.process()]);
    const running = others.map(async (other) => {
      while (!isOver) await other.run(KEY, () => sleep(5));
    });
    return async () => {
      isOver = true;
      await Promise.all(running);
    };
  }

  /** A registry whose duplicate goes through a proxy the first time, and the proxy. */
  async function ownConnection(): Promise<[RedisLockRegistry, FaultyProxy]> {
    const messages = await fixture.redis.proxy();
    const client = await fixture.redis.connect();
    const first = await connectTo(messages.address);
    const duplicates = [first.duplicate(), client.duplicate()];
    first.destroy();
    return [fixture.on(Object.assign(client, { duplicate: () => duplicates.shift() ?? client })), messages];
  }

  async function givenConnection(): Promise<[RedisLockRegistry, FaultyProxy]> {
    const { registry, messages } = await fixture.proxied();
    return [registry, messages];
  }

  const connections = { 'its own connection': ownConnection, 'a connection of the caller': givenConnection };

  it.each([
    ['its own connection', 'the server has closed it'],
    ['a connection of the caller', 'the server knows nothing of it'],
  ] as const)('P9: gets its turns: %s, %s', async (kind, how) => {
    const [registry, messages] = await connections[kind]();
    const held = await (await fixture.process()).obtain(KEY).lock();
    const subscribing = registry.run(KEY, () => undefined);
    await fixture.queued(1);
    await held.unlock();
    await subscribing;
    const stop = await contend();
    messages.blackHole = true;
    if (how === 'the server has closed it') await fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'PUBSUB']);
    for (let turn = 0; turn < 3; turn++) {
      const calledAt = performance.now();
      await registry.run(KEY, () => undefined);
      expect(performance.now() - calledAt).toBeLessThan(SOON + machineDelay());
    }
    messages.blackHole = false;
    messages.reset();
    await stop();
  });

  it('P9: relies on messages again soon, over a new connection', async () => {
    const [registry, messages] = await ownConnection();
    const held = await (await fixture.process()).obtain(KEY).lock();
    const waiting = registry.run(KEY, () => undefined);
    await fixture.queued(1);
    messages.blackHole = true;
    await fixture.admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'PUBSUB']);
    const channel = `${fixture.names.companion('grants')}:*`;
    const listeners = async () => (await fixture.admin.pubSubChannels(channel)).length;
    await until(async () => (await listeners()) === 0);
    await until(async () => (await listeners()) === 1);
    await held.unlock();
    await waiting;
  });
});

describePrivate('A waiter that no message reaches', () => {
  const redis = PrivateRedis.install();

  beforeAll(async () => {
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'mute', 'on', '>x', '~*', '&*', '+@all', ...MUTE]);
  });

  const start = async (lockType: (typeof LOCK_TYPES)[number]) => {
    // It polls so seldom that only a poll of once a second finds anything.
    const options = { registryKey: uniqueKey('unreachable'), lockType, idleBetweenTries: 100 };
    const mute = createRegistry(await redis.connect({ username: 'mute', password: 'x' }), options);
    const waiter = createRegistry(await redis.connect(), options);
    return { mute, waiter };
  };

  const endings = ['a holder without the right to PUBLISH released it', 'its key was deleted by hand'] as const;

  it.each(LOCK_TYPES.flatMap((lockType) => endings.map((ending) => ({ lockType, ending }))))(
    'A waiter of a $lockType lock that no message reaches gets it soon after $ending',
    async ({ lockType, ending }) => {
      const { mute, waiter } = await start(lockType);
      const lease = await mute.registry.obtain(KEY).lock({ ttl: 6_000 });
      const waiting = waiter.registry.obtain(KEY).lock();
      if (ending === endings[1]) await redis.admin.persist(mute.nameOf(KEY));
      await untilQuiet(redis.admin);
      await (ending === endings[0] ? lease.unlock() : redis.admin.del(mute.nameOf(KEY)));
      expect(await elapsed(waiting)).toBeLessThan(SOON + machineDelay());
      await (await waiting).unlock();
    },
  );
});
