import { expect, it } from '@jest/globals';
import { LockAskedError, type LockLostError } from '../../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../../lib/testing';
import { LOCK_TYPES } from '../../support/lock-types';
import { createRealClient, describeReal, uniqueKey } from '../../support/redis';
import { createRegistry, lossOf } from '../../support/test-registry';
import { until } from '../../support/until';

/** ms; a message takes some ms, and a busy machine may hold it up for seconds. */
const RENEWED_AFTER = 20_000;

describeReal('A holder is told', () => {
  /** Two registries of one key, as of two processes. */
  const pair = async (lockType: (typeof LOCK_TYPES)[number], options = {}) => {
    const registryKey = uniqueKey('told');
    const clients = [await createRealClient(), await createRealClient()] as const;
    const ours = createRegistry(clients[0], { registryKey, lockType, name: 'ours', ...options });
    const theirs = createRegistry(clients[1], { registryKey, lockType, name: 'theirs' });
    return { ours, theirs, client: clients[1] };
  };

  /** Resolves when Redis has the inbox of a registry. */
  const openInbox = (client: Awaited<ReturnType<typeof createRealClient>>, id: string) =>
    until(async () => (await client.pubSubChannels(`*@${id}*`)).length === 1);

  it.each(LOCK_TYPES)(
    'a forced unlock is heard at once by the holder of a %s lock, which says by whom',
    async (type) => {
      const { ours, theirs, client } = await pair(type, { inbox: true, expireAfter: 3 * RENEWED_AFTER });
      const lease = await ours.registry.obtain('key').lock();
      const heldSince = performance.now();
      await openInbox(client, ours.registry.id);
      const lost = lossOf(lease);
      const state = await theirs.registry.obtain('key').forceUnlock();
      expect(state).toMatchObject({ held: true, name: 'ours', told: true });
      expect((await lost).reason).toBe('expired');
      // No renewal can have found it.
      expect(performance.now() - heldSince).toBeLessThan(RENEWED_AFTER / 2);
      const reason = lease.signal.reason as LockLostError;
      expect([reason.by, reason.message]).toEqual([
        'theirs',
        expect.stringContaining('theirs has unlocked it by force'),
      ]);
      await expect(lease.unlock()).rejects.toMatchObject({ by: 'theirs' });
    },
  );

  it.each(LOCK_TYPES)('without an inbox the holder of a %s lock is not told', async (type) => {
    const { ours, theirs } = await pair(type);
    const lease = await ours.registry.obtain('key').lock();
    expect(await theirs.registry.obtain('key').forceUnlock()).toMatchObject({ held: true, told: false });
    await expect(lease.renew()).rejects.toMatchObject({ reason: 'expired', by: undefined });
    expect(await theirs.registry.obtain('key').forceUnlock()).not.toHaveProperty('told');
  });

  it('all that hold a semaphore, or read, are told and asked', async () => {
    const { ours, theirs, client } = await pair('spin', { inbox: true });
    const semaphore = ours.registry.semaphore('several', { permits: 3 });
    const leases = [await semaphore.lock({ permits: 2 }), await semaphore.lock()];
    // Readers of a process have one hold.
    const { read } = ours.registry.readWrite('book');
    const readers = [await read.lock(), await read.lock()];
    await openInbox(client, ours.registry.id);
    const asked = [...leases, ...readers].map(
      (lease) => new Promise((heard) => lease.asked.addEventListener('abort', heard)),
    );
    expect(await theirs.registry.semaphore('several', { permits: 3 }).ask('please')).toBe(true);
    expect(await theirs.registry.readWrite('book').write.ask()).toBe(true);
    await Promise.all(asked);
    const lost = Promise.all([...leases, ...readers].map(lossOf));
    expect(await theirs.registry.semaphore('several', { permits: 3 }).forceUnlock()).toMatchObject({ told: true });
    expect(await theirs.registry.readWrite('book').write.forceUnlock()).toMatchObject({ told: true });
    expect((await lost).map(({ reason }) => reason)).toEqual(['expired', 'expired', 'expired', 'expired']);
  });

  it('a message that is not true ends nothing, and what is no message is ignored', async () => {
    const { ours, client } = await pair('pub-sub', { inbox: true });
    const lease = await ours.registry.obtain('key').lock();
    await openInbox(client, ours.registry.id);
    const [channel = ''] = await client.pubSubChannels(`*@${ours.registry.id}*`);
    const { owner } = await ours.registry.obtain('key').inspect();
    const by = 'them:AAAAAAAAAAAAAAAAAAAAAA:1';
    for (const message of [
      `taken ${owner} ${by} ${ours.nameOf('key')}`,
      `taken ${by} ${by} ${ours.nameOf('key')}`,
      `taken ${owner} ${by} other`,
      `ended ${owner} ${ours.nameOf('key')}`,
      `asked ${owner} ${by} %E0 ${ours.nameOf('key')}`,
      `freed ${owner} ${by}`,
      'taken',
      '',
    ]) {
      expect(await client.publish(channel, message)).toBe(1);
    }
    await until(() => lease.asked.aborted);
    await lease.renew();
    expect([lease.remaining > 0, lease.signal.aborted]).toEqual([true, false]);
    // A loss for another reason is nobody's.
    await client.del(ours.nameOf('key'));
    await expect(lease.renew()).rejects.toMatchObject({ reason: 'expired', by: undefined });
    expect(ours.warnings).toEqual([]);
  });

  it.each(LOCK_TYPES)('the holder of a %s lock hears who asks for it, and why, and keeps it', async (type) => {
    const { ours, theirs } = await pair(type);
    const lock = theirs.registry.obtain('key');
    expect(await lock.ask('nobody has it')).toBe(false);
    await ours.registry.run('key', async (lease) => {
      expect(await lock.ask('nobody listens')).toBe(false);
      expect(lease.asked.aborted).toBe(false);
      await until(() => lock.ask(`a ü\n${'x'.repeat(300)}`));
      await until(() => lease.asked.aborted);
      const reason = lease.asked.reason as LockAskedError;
      expect(reason).toBeInstanceOf(LockAskedError);
      expect(reason).toMatchObject({ by: 'theirs', key: 'key', why: `a ü\n${'x'.repeat(196)}` });
      expect(reason.message).toBe(`Lock "key" is asked for by theirs: a ü\\n${'x'.repeat(196)}`);
      // Who asks later does not change it.
      await lock.ask('again');
      expect([lease.asked.reason, lease.signal.aborted]).toEqual([reason, false]);
      await ours.registry.run('key', (nested) => expect(nested.asked).toBe(lease.asked));
    });
    await expect(lock.ask(7 as never)).rejects.toThrow('`why`');
  });

  it('a lease of several keys is asked where one of them is', async () => {
    const { ours, theirs } = await pair('spin');
    const lease = await ours.registry.multi(['a', 'b']).lock();
    expect(lease.asked.aborted).toBe(false);
    await until(() => theirs.registry.obtain('b').ask('b'));
    await until(() => lease.asked.aborted);
    expect(lease.asked.reason).toMatchObject({ key: 'b' });
    expect(await theirs.registry.multi(['a', 'c']).ask()).toBe(true);
    await lease.unlock();
  });
});

it('In memory, a holder is told and asked too', async () => {
  const locks = new InMemoryLocks();
  const ours = new InMemoryLockRegistry({ locks, name: 'ours', inbox: true });
  const theirs = new InMemoryLockRegistry({ locks, name: 'theirs' });
  const lease = await ours.obtain('key').lock();
  expect(await theirs.obtain('key').ask('please')).toBe(true);
  await until(() => lease.asked.aborted);
  expect(lease.asked.reason).toMatchObject({ by: 'theirs', why: 'please' });
  const lost = lossOf(lease);
  expect(await theirs.obtain('key').forceUnlock()).toMatchObject({ held: true, told: true });
  expect((await lost).reason).toBe('expired');
  expect(lease.signal.reason).toMatchObject({ by: 'theirs' });
  const shared = await ours.semaphore('several', { permits: 2 }).lock();
  expect(await theirs.semaphore('several', { permits: 2 }).ask()).toBe(true);
  await until(() => shared.asked.aborted);
  await ours.close({ timeout: 0 });
  expect(await theirs.semaphore('several', { permits: 2 }).ask()).toBe(false);
});
