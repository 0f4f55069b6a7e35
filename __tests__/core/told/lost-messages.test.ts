import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import { CannotAcquireLockError, type Lease, type LockType, RegistryClosedError } from '../../../lib';
import { REDISSON_SCRIPTS } from '../../../lib/kinds/redisson/kind';
import { SPRING_SCRIPTS } from '../../../lib/kinds/spring/kind';
import { HoldableClient } from '../../support/holdable-client';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry, type ProxiedRegistry } from '../../support/proxied-registry';
import { uniqueKey } from '../../support/redis';
import { createRegistry, lossOf, type TestRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** ms; nobody waits for so long unless something is wrong. */
const LONG = 30_000;

/** ms; what is over at a time takes no longer than this after it. */
const SLACK = 400;

describePrivate('Messages about a lock that is replaced', () => {
  const redis = PrivateRedis.install();
  let registryKey: string;

  beforeEach(() => {
    registryKey = uniqueKey('lost');
  });

  /** A registry behind proxies, and one without. */
  const pair = async (lockType: LockType, options = { inbox: true }) => {
    const ours = await createProxiedRegistry(redis, { registryKey, lockType, name: 'ours', ...options });
    const theirs = createRegistry(await redis.connect(), { registryKey, lockType, name: 'theirs' });
    return { ours, theirs };
  };

  const scriptsRun = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.admin.info('commandstats'))?.[1]);

  /** Resolves when the inbox of a registry is open. */
  const listens = ({ registry }: Pick<ProxiedRegistry, 'registry'>) =>
    until(async () => (await redis.admin.pubSubChannels(`*@${registry.id}*`)).length === 1);

  it.each(TRAVELLING_TYPES)(
    'that comes before the grant of a %s lock is no end: nobody begins while the task may run',
    async (type) => {
      const { ours, theirs } = await pair(type);
      const warm = await ours.registry.obtain('warm').lock({ replace: true });
      await warm.unlock();
      await ours.settle();
      ours.commands.replies.hold = true;
      const acquiring = ours.registry.obtain('key').lock({ replace: true });
      await until(async () => (await redis.admin.exists(ours.nameOf('key'))) === 1);
      let next: Lease | undefined;
      const replacing = theirs.registry.obtain('key').lock({ replace: true, grace: LONG });
      void replacing.then((lease) => (next = lease));
      await until(async () => (await theirs.registry.obtain('key').inspect()).name === 'theirs');
      await ours.subscriber.ping();
      await theirs.registry.obtain('key').inspect();
      expect(next).toBeUndefined();
      ours.commands.replies.hold = false;
      const lease = await acquiring;
      expect((await lossOf(lease)).reason).toBe('stolen');
      await theirs.registry.obtain('key').inspect();
      expect(next).toBeUndefined();
      await expect(lease.unlock()).rejects.toMatchObject({ by: 'theirs' });
      await (await replacing).unlock();
    },
  );

  it.each(TRAVELLING_TYPES)(
    'that find a %s lock being released: the release finds the loss, and the next one begins',
    async (type) => {
      const { ours, theirs } = await pair(type);
      const lease = await ours.registry.obtain('key').lock();
      await listens(ours);
      ours.commands.requests.hold = true;
      const unlocking = lease.unlock();
      const replacing = theirs.registry.obtain('key').lock({ replace: true, grace: LONG });
      await until(async () => (await theirs.registry.obtain('key').inspect()).name === 'theirs');
      await ours.subscriber.ping();
      ours.commands.requests.hold = false;
      await expect(unlocking).rejects.toMatchObject({ reason: 'stolen', by: 'theirs' });
      await (await replacing).unlock();
    },
  );

  it('of two callers of a process that name one owner: neither waits for all of the grace', async () => {
    const { ours, theirs } = await pair('pub-sub');
    const lease = await ours.registry.obtain('key').lock();
    await listens(ours);
    const lost = lossOf(lease);
    const run = () => theirs.registry.run('key', () => undefined, { replace: true, grace: LONG });
    const settled = Promise.allSettled([run(), run()]);
    await lost;
    await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    const reasons = (await settled).map((one) => (one.status === 'fulfilled' ? 'ran' : one.reason.reason));
    // The second one may have come when the first one was over.
    expect([
      ['ran', 'ran'],
      ['ran', 'stolen'],
    ]).toContainEqual(reasons.sort());
  });

  it('reach the first lease of a process that replaces: its inbox is open before, though that takes long', async () => {
    const { ours, theirs } = await pair('spin', { inbox: false });
    ours.messages.delay = 150;
    const lease = await ours.registry.obtain('key').lock({ replace: true });
    expect(await theirs.registry.obtain('key').ask('at once')).toBe(true);
    await lease.unlock();
  });

  it('that cannot come, since nothing answers the subscription, delay no call for longer than its wait', async () => {
    const { ours } = await pair('spin', { inbox: false });
    ours.messages.blackHole = true;
    const lock = ours.registry.obtain('key');
    const startedAt = performance.now();
    for (let i = 0; i < 3; i++) await (await lock.tryLock({ replace: true }))?.unlock();
    await (await lock.lock({ replace: true, waitTime: 200 })).unlock();
    expect(performance.now() - startedAt).toBeLessThan(3 * 50 + 200 + SLACK + machineDelay());
    const calledAt = performance.now();
    const calling = lock.lock({ replace: true });
    void ours.registry.close();
    await expect(calling).rejects.toThrow(RegistryClosedError);
    expect(performance.now() - calledAt).toBeLessThan(SLACK + machineDelay());
  });

  it.each(['pub-sub', 'fair', 'redisson'] as const)(
    'that are late: a call does not wait for the end of its own lease, which it has not heard of yet: %s',
    async (type) => {
      const { ours, theirs } = await pair(type);
      // Who hears nothing keeps its lock.
      const held = await theirs.registry.obtain('key').lock();
      const replacing = ours.registry.obtain('key').lock({ replace: true, grace: LONG });
      await until(() => ours.registry.obtain('key').passing.waiting > 0);
      // It asks who has the lock a second after it began to wait.
      await sleep(900);
      const grants = type === 'fair' ? ours.messages : ours.commands;
      grants.replies.hold = true;
      await held.unlock();
      await until(async () => (await theirs.registry.obtain('key').inspect()).name === 'ours');
      // Less than a silence.
      await sleep(200);
      grants.replies.hold = false;
      await (await replacing).unlock();
    },
  );

  it('cost no call more than its wait, though the server stands still in it', async () => {
    const { ours, theirs } = await pair('spin');
    const held = await theirs.registry.obtain('key').lock();
    const startedAt = performance.now();
    const call = ours.registry.obtain('key').lock({ replace: true, grace: 50, waitTime: 1_300 });
    void sleep(900).then(() => (ours.commands.blackHole = true));
    await expect(call).rejects.toThrow(CannotAcquireLockError);
    expect(performance.now() - startedAt).toBeLessThan(1_300 + SLACK + machineDelay());
    ours.commands.blackHole = false;
    await held.unlock();
  });

  it.each(TRAVELLING_TYPES)(
    'of %s locks cost no call more than its wait, behind one of its process without an answer',
    async (type) => {
      const { ours } = await pair(type);
      await (await ours.registry.obtain('warm').lock()).unlock();
      ours.commands.blackHole = true;
      const front = ours.registry.obtain('key').lock({ waitTime: 1_000 });
      const startedAt = performance.now();
      await expect(ours.registry.obtain('key').lock({ replace: true, waitTime: 300 })).rejects.toThrow(
        CannotAcquireLockError,
      );
      expect(performance.now() - startedAt).toBeLessThan(300 + SLACK + machineDelay());
      ours.commands.blackHole = false;
      await expect(front).rejects.toThrow(CannotAcquireLockError);
    },
  );

  it('that end no task cost the wait and the grace, though the server stands still at the end of that', async () => {
    const { ours, theirs } = await pair('spin');
    const held = await theirs.registry.obtain('key').lock({ replace: true });
    const lost = lossOf(held);
    const startedAt = performance.now();
    const call = ours.registry.obtain('key').lock({ replace: true, ttl: LONG, grace: 300, waitTime: 300 });
    await lost;
    ours.commands.blackHole = true;
    await expect(call).rejects.toThrow(CannotAcquireLockError);
    expect(performance.now() - startedAt).toBeLessThan(300 + 300 + SLACK + machineDelay());
    ours.commands.blackHole = false;
    await expect(held.unlock()).rejects.toMatchObject({ by: 'ours' });
  });

  it.each(['taken', 'ended'] as const)(
    'are repeated: "%s" that was lost does not cost all of the grace',
    async (which) => {
      const { ours, theirs } = await pair('spin');
      // Who loses it is behind the proxies.
      const [holder, taker] = which === 'taken' ? [ours, theirs] : [theirs, ours];
      const lease = await holder.registry.obtain('key').lock({ replace: true });
      await (await taker.registry.obtain('warm').lock({ replace: true })).unlock();
      const [inbox = ''] = await redis.admin.pubSubChannels(`*@${ours.registry.id}*`);
      const observer = await redis.connect();
      const heard: string[] = [];
      await observer.subscribe(inbox, (message) => heard.push(message.split(' ')[0] as string));
      const lost = lossOf(lease);
      ours.messages.replies.swallow = which === 'taken';
      const replacing = taker.registry.obtain('key').lock({ replace: true, grace: LONG });
      if (which === 'ended') {
        await lost;
        ours.messages.replies.swallow = true;
        await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen' });
      }
      await until(() => heard.includes(which));
      // What was sent has come to the proxy.
      await sleep(50);
      ours.messages.replies.swallow = false;
      if (which === 'taken') {
        await lost;
        await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen' });
      }
      await (await replacing).unlock();
      expect(heard.filter((word) => word === which).length).toBeGreaterThan(1);
    },
  );

  it('that never arrive cost the grace, and the holder finds the loss by its renewal', async () => {
    const { ours, theirs } = await pair('spin');
    const lease = await ours.registry.obtain('key').lock();
    await listens(ours);
    ours.messages.replies.swallow = true;
    const next = await theirs.registry.obtain('key').lock({ replace: true, grace: 300 });
    expect(lease.signal.aborted).toBe(false);
    await expect(lease.renew()).rejects.toMatchObject({ reason: 'stolen', by: undefined });
    await next.unlock();
  });

  it.each(['spin', 'redisson'] as const)(
    'of a %s lock: a reply that is lost takes it once, and a late repetition nothing',
    async (type) => {
      const { ours, theirs } = await pair(type);
      const lease = await theirs.registry.obtain('key').lock({ replace: true });
      await (await ours.registry.obtain('warm').lock({ replace: true })).unlock();
      const lost = lossOf(lease);
      const losing = ours.commands.loseReply('taken ');
      const replacing = ours.registry.obtain('key').lock({ replace: true, grace: LONG });
      await Promise.all([losing, lost]);
      const { owner: from } = await theirs.registry.obtain('key').inspect();
      await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen', by: 'ours' });
      const next = await replacing;
      expect((await theirs.registry.obtain('key').inspect()).owner).toBe(from);
      const last = theirs.registry.obtain('key').lock({ replace: true, grace: LONG });
      await lossOf(next);
      await expect(next.unlock()).rejects.toMatchObject({ by: 'theirs' });
      await last;
      const { owner, remaining } = await theirs.registry.obtain('key').inspect();
      // The client sends the first command once more: it names an owner that had the lock before.
      const { REPLACE } = type === 'spin' ? SPRING_SCRIPTS : REDISSON_SCRIPTS;
      const args = ['somebody before', from as string, '60000', 'channel', 'message', '0'];
      expect(await redis.admin.eval(REPLACE.source, { keys: [ours.nameOf('key')], arguments: args })).toBe(-1);
      expect(await theirs.registry.obtain('key').inspect()).toMatchObject({ owner });
      expect(remaining).toBeGreaterThan(0);
      await (await last).unlock();
    },
  );

  it.each(TRAVELLING_TYPES)(
    'are not waited for, where a caller in front sleeps and the lock is free: %s',
    async (type) => {
      const { theirs } = await pair(type);
      const { registry } = createRegistry(await redis.connect(), {
        registryKey,
        lockType: type,
        idleBetweenTries: 200,
      });
      const held = await theirs.registry.obtain('key').lock();
      const front = registry.obtain('key').lock();
      await until(() => registry.obtain('key').passing.waiting > 0);
      await until(async () => (await theirs.registry.obtain('key').inspect()).held);
      // Its key is removed by hand: nobody hears of it.
      await redis.admin.del(theirs.nameOf('key'));
      const before = await scriptsRun();
      const replacing = registry.obtain('key').lock({ replace: true, grace: 0 });
      await (await front).unlock();
      await (await replacing).unlock();
      expect((await scriptsRun()) - before).toBeLessThan(60);
      await expect(held.unlock()).rejects.toMatchObject({ reason: 'expired' });
    },
  );

  it.each(TRAVELLING_TYPES)(
    'of a %s lock that is taken late, for a call that has left: the task before has all of its grace from then on (P14)',
    async (type) => {
      const grace = 700;
      const client = new HoldableClient(await redis.connect());
      const ours = createRegistry(client, { registryKey, lockType: type });
      const [theirs, others] = [await redis.connect(), await redis.connect()].map((one) =>
        createRegistry(one, { registryKey, lockType: type }),
      ) as [TestRegistry, TestRegistry];
      // From now on the server knows the script.
      const warm = await theirs.registry.obtain('warm').lock({ replace: true });
      await (await ours.registry.obtain('warm').lock({ replace: true, grace: 1 })).unlock();
      await expect(warm.unlock()).rejects.toMatchObject({ reason: 'stolen' });
      const lease = await theirs.registry.obtain('key').lock({ replace: true });
      const lost = lossOf(lease);
      const caught = client.catchNext('held', 'taken ');
      const abort = new AbortController();
      const calling = ours.registry.obtain('key').lock({ replace: true, grace, signal: abort.signal });
      const late = await caught;
      abort.abort('left');
      await expect(calling).rejects.toBe('left');
      await sleep(grace);
      const takenAt = performance.now();
      await late.deliver();
      await lost;
      const next = others.registry.obtain('key').lock({ waitTime: LONG });
      await ours.registry.close();
      await (await next).unlock();
      expect(performance.now() - takenAt).toBeGreaterThan(grace);
      await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    },
  );

  it('need no connection any more when the registry is closed', async () => {
    const { registry } = createRegistry(await redis.connect(), { registryKey, lockType: 'spin' });
    const lease = await registry.obtain('key').lock();
    await registry.close({ timeout: 0 });
    expect(lease.asked.aborted).toBe(false);
    await expect(registry.obtain('key').lock({ replace: true })).rejects.toThrow(RegistryClosedError);
    await sleep(100);
    expect(await redis.admin.pubSubChannels(`*@${registry.id}*`)).toEqual([]);
  });

  it('that are not sent to a holder that is asked: the call rejects with the error of an inspection', async () => {
    const rights = ['+@all', '-publish'];
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'silent', 'reset', 'on', '>x', '~*', '&*', ...rights]);
    const { theirs } = await pair('spin');
    const lease = await theirs.registry.obtain('key').lock();
    const client = await redis.connect({ username: 'silent', password: 'x' });
    const { registry } = createRegistry(client, { registryKey, lockType: 'spin' });
    const asking = registry.obtain('key').ask('at once');
    await expect(asking).rejects.toMatchObject({ code: 'ERR_LOCK_INSPECTION', key: 'key', cause: expect.any(Error) });
    await lease.unlock();
  });

  it.each(TRAVELLING_TYPES)(
    'are refused to a user of %s locks: it is not told, nor replaced, and one warning says so',
    async (type) => {
      const rights = ['+@all', '-subscribe', '-ssubscribe'];
      await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', 'reset', 'on', '>x', '~*', '&*', ...rights]);
      const client = await redis.connect({ username: 'locks', password: 'x' });
      const ours = createRegistry(client, { registryKey, lockType: type, inbox: true, name: 'ours' });
      const theirs = createRegistry(await redis.connect(), { registryKey, lockType: type });
      const lease = await ours.registry.obtain('key').lock();
      await until(() => ours.warnings.length > 0);
      expect(await theirs.registry.obtain('key').tryLock({ replace: true })).toBeNull();
      expect(await theirs.registry.obtain('key').ask()).toBe(false);
      expect(await theirs.registry.obtain('key').forceUnlock()).toMatchObject({ told: false });
      await expect(lease.renew()).rejects.toMatchObject({ reason: 'expired' });
      // It replaces others all the same.
      const held = await theirs.registry.obtain('other').lock({ replace: true });
      const taken = ours.registry.obtain('other').lock({ replace: true, grace: 50 });
      await lossOf(held);
      await held.unlock().catch(() => undefined);
      await (await taken).unlock();
      expect(ours.warnings).toEqual([
        expect.objectContaining({
          code: 'SUBSCRIBER_UNAVAILABLE',
          message: expect.stringMatching(/^Leases of this registry can be neither told/),
        }),
      ]);
    },
  );

  it.each([
    ['spring', SPRING_SCRIPTS],
    ['redisson', REDISSON_SCRIPTS],
  ] as const)('that nobody heard (%s) are no grant for which replicas are waited for', (_, { REPLACE }) => {
    expect([1, '17', -2, -1, 0].map((reply) => REPLACE.grants?.(reply))).toEqual([true, true, false, false, false]);
  });

  it('leave the queue of fair locks as it is: who replaces passes it, and its callers go on in their order', async () => {
    const { ours, theirs } = await pair('fair');
    const lease = await ours.registry.obtain('key').lock();
    await listens(ours);
    const order: string[] = [];
    const waiting: Promise<void>[] = [];
    for (const name of ['first', 'second']) {
      const { registry } = createRegistry(await redis.connect(), { registryKey, lockType: 'fair', name });
      waiting.push(registry.run('key', () => void order.push(name)));
      await until(async () => (await theirs.registry.obtain('key').inspect()).waiting === waiting.length);
    }
    const here = ours.registry.run('key', () => void order.push('here'));
    const lost = lossOf(lease);
    const replacing = theirs.registry.obtain('key').lock({ replace: true, grace: LONG });
    await lost;
    await lease.unlock().catch(() => undefined);
    const next = await replacing;
    expect(order).toEqual([]);
    await next.unlock();
    await Promise.all([...waiting, here]);
    expect(order).toEqual(['first', 'second', 'here']);
  });
});
