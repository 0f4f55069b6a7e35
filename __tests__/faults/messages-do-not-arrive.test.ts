import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { DistributedLock, LockType, RedisLockRegistry } from '../../lib';
import { fromIoredis } from '../../lib/clients/ioredis';
import { FaultyProxy } from '../../support/proxy';
import { RedisFixture } from '../kinds/waiting/redis-fixture';
import { ioredisOptions } from '../support/ioredis-packages';
import { Node } from '../support/node';
import { connectTo, describePrivate, untilTheEnd } from '../support/private-redis';
import { until } from '../support/until';

/** Turns of the process that no message reaches, beside a busy one, and ms for them: some two seconds where it is alone. */
const TURNS = 5;
const WITHIN = 20_000;

type LockOf = (registry: RedisLockRegistry) => DistributedLock;

const plain: LockOf = (registry) => registry.obtain('key');

const KINDS: readonly [what: string, lockType: LockType, lockOf: LockOf][] = [
  ['pub-sub', 'pub-sub', plain],
  ['pub-sub, with a name whose braces make no hash tag', 'pub-sub', (registry) => registry.obtain('a}b{')],
  ['redisson', 'redisson', plain],
  ['redisson-fair', 'redisson-fair', plain],
  ['a semaphore', 'pub-sub', (registry) => registry.semaphore('key', { permits: 1 })],
  ['for writing', 'pub-sub', (registry) => registry.readWrite('key').write],
];

describePrivate('A process whose messages do not arrive', () => {
  let isOver = false;
  const loops: Promise<unknown>[] = [];
  const endLoops = async () => {
    isOver = true;
    await Promise.all(loops.splice(0));
  };

  // Before the registries are closed.
  afterEach(endLoops);
  const fixture = RedisFixture.install();
  const options = { idleBetweenTries: 100 };

  /** Callers that take the lock over and over, until the test ends. */
  function takeTurns(lock: DistributedLock, callers: number): { turns: number } {
    isOver = false;
    const taken = { turns: 0 };
    const loop = async () => {
      while (!isOver) {
        await lock.run(() => sleep(3));
        taken.turns++;
        await sleep(1);
      }
    };
    for (let caller = 0; caller < callers; caller++) loops.push(loop());
    return taken;
  }

  async function expectTurns(taken: { turns: number }): Promise<void> {
    const before = taken.turns;
    await until(() => taken.turns >= before + TURNS, { within: WITHIN });
  }

  it.each(KINDS)('has its turns beside a busy one, and warns once: %s', async (_, lockType, lockOf) => {
    const { proxy, client } = await fixture.proxied();
    const quiet = fixture.registry(client, { ...options, lockType });
    const busy = await fixture.process({ ...options, lockType });
    const ours = takeTurns(lockOf(quiet.registry), 1);
    const others = takeTurns(lockOf(busy.registry), 4);
    await expectTurns(ours);
    // The connection stays open for the client, and for the server; one that is made anew is deaf, too.
    proxy.isDeaf = true;
    await expectTurns(ours);
    await expectTurns(ours);
    await expectTurns(others);
    await until(() => quiet.warnings.length > 0);
    proxy.isDeaf = false;
    proxy.resetSubscribed();
    await expectTurns(ours);
    expect(busy.warnings).toEqual([]);
    const codes = quiet.warnings.map(({ code }) => code);
    expect(codes).toEqual(['SUBSCRIBER_UNAVAILABLE']);
  });

  describe('since they come from a replica', () => {
    const servers = async () => {
      const master = await untilTheEnd(Node.start());
      const { host, port } = master.address;
      const { address } = await untilTheEnd(Node.start('--replicaof', host, String(port)));
      const admin = await fixture.connect({}, address);
      await until(async () => (await admin.info('replication')).includes('master_link_status:up'));
      return { master: master.address, replica: address, admin };
    };

    it('A `subscriber` that is connected to a replica is named in a warning, and its process has its turns', async () => {
      const { master, replica } = await servers();
      const subscriber = await fixture.connect({}, replica);
      const quiet = fixture.registry(await fixture.connect({}, master), { ...options, subscriber });
      const busy = fixture.registry(await fixture.connect({}, master), options);
      const ours = takeTurns(plain(quiet.registry), 1);
      takeTurns(plain(busy.registry), 4);
      await expectTurns(ours);
      const warning = await until(() => quiet.warnings[0]);
      expect(warning).toMatchObject({ code: 'SUBSCRIBER_UNAVAILABLE' });
      expect(warning?.message).toBe(
        'Messages of the option "subscriber" come late or not at all: it is connected to another server than the client, perhaps to a replica',
      );
    });

    it('A connection for messages that leads to a replica, since its server was demoted, is made anew', async () => {
      const { master, replica, admin } = await servers();
      const proxy = await untilTheEnd(FaultyProxy.start(master));
      const quiet = fixture.registry(await fixture.connect({}, proxy.address), options);
      const busy = fixture.registry(await fixture.connect({}, master), options);
      // As if the connection had been made before the failover.
      proxy.target = replica;
      const lease = await plain(busy.registry).lock();
      const ours = takeTurns(plain(quiet.registry), 1);
      await until(async () => (await admin.pubSubChannels('*')).length > 0);
      proxy.target = master;
      await lease.unlock();
      takeTurns(plain(busy.registry), 4);
      await expectTurns(ours);
      await until(async () => (await admin.pubSubChannels('*')).length === 0, { within: WITHIN });
      await expectTurns(ours);
      expect(quiet.warnings).toEqual([]);
    });
  });

  it('A connection for messages takes over the new password that the application has given its client', async () => {
    const { username } = await fixture.user();
    const redis = new Redis({ ...ioredisOptions(fixture.redis.address), username, password: 'secret' });
    redis.on('error', () => undefined);
    try {
      const quiet = fixture.registry(fromIoredis(redis), options);
      const busy = await fixture.process(options);
      const ours = takeTurns(plain(quiet.registry), 1);
      takeTurns(plain(busy.registry), 4);
      await expectTurns(ours);
      const admin = await connectTo(fixture.redis.address);
      await admin.sendCommand(['ACL', 'SETUSER', username, '>new']);
      redis.options.password = 'new';
      await redis.auth(username, 'new');
      await admin.sendCommand(['ACL', 'SETUSER', username, '<secret']);
      await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'pubsub', 'USER', username]);
      await expectTurns(ours);
      const subscribed = async () => (await admin.sendCommand(['CLIENT', 'LIST', 'TYPE', 'pubsub'])) as string;
      await until(async () => (await subscribed()).includes(`user=${username} `), { within: WITHIN });
      await expectTurns(ours);
      admin.destroy();
      await endLoops();
      await quiet.registry.close();
    } finally {
      redis.disconnect();
    }
  });
});
