import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import {
  type Lease,
  type LockLostError,
  type LockType,
  type RedisLockRegistry,
  RegistryClosedError,
} from '../../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../../lib/testing';
import { TRAVELLING_TYPES } from '../../support/lock-types';
import { createRealClient, describeReal, uniqueKey } from '../../support/redis';
import { createRegistry, lossOf } from '../../support/test-registry';
import { until } from '../../support/until';

/** ms; nobody waits for so long unless something is wrong. */
const LONG = 30_000;

/** Runs a section of the registry that replaces, and notes what happens. `end` ends its task. */
function section(registry: Pick<RedisLockRegistry, 'run'>, name: string, log: string[], options: object = {}) {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  let begun = (_lease: Lease): void => undefined;
  const lease = new Promise<Lease>((resolve) => (begun = resolve));
  const over = registry
    .run(
      'key',
      async (own) => {
        log.push(`${name} begins`);
        begun(own);
        await ended;
        log.push(`${name} ends`);
      },
      { replace: true, grace: LONG, ...options },
    )
    .then(
      () => 'ran',
      (error: LockLostError) => `${error.reason ?? error.constructor.name} by ${error.by}`,
    );
  return { lease, end, over };
}

describeReal('A call that replaces', () => {
  /** Registries of one key, each with a client of its own, as of several processes. */
  const registries = async (lockType: LockType, ...names: string[]) => {
    const registryKey = uniqueKey('replaced');
    return Promise.all(
      names.map(async (name) => {
        const made = createRegistry(await createRealClient(), { registryKey, lockType, name, fencing: true });
        return made.registry;
      }),
    );
  };

  it.each(TRAVELLING_TYPES)(
    'takes a %s lock from its holder, which is told, and begins when that one has ended (P14)',
    async (type) => {
      const [one, other] = (await registries(type, 'one', 'other')) as [RedisLockRegistry, RedisLockRegistry];
      const log: string[] = [];
      const first = section(one, 'one', log);
      const lost = lossOf(await first.lease);
      const second = section(other, 'other', log);
      expect((await lost).reason).toBe('stolen');
      expect(((await first.lease).signal.reason as LockLostError).message).toContain('other has taken it');
      expect(await one.obtain('key').inspect()).toMatchObject({ name: 'other' });
      first.end();
      expect(await first.over).toBe('stolen by other');
      const lease = await second.lease;
      expect(lease.fencingToken).toBeGreaterThan((await first.lease).fencingToken as number);
      second.end();
      expect(await second.over).toBe('ran');
      expect(log).toEqual(['one begins', 'one ends', 'other begins', 'other ends']);
      expect(await one.obtain('key').inspect()).toMatchObject({ held: false });
    },
  );

  it.each(TRAVELLING_TYPES)('takes a %s lock from a caller of its own process too', async (type) => {
    const [one] = (await registries(type, 'one')) as [RedisLockRegistry];
    const log: string[] = [];
    const first = section(one, 'first', log);
    await first.lease;
    const second = section(one, 'second', log);
    await lossOf(await first.lease);
    first.end();
    expect(await first.over).toBe('stolen by one');
    await second.lease;
    // A caller in line goes on afterwards.
    const third = section(one, 'third', log, { replace: false });
    second.end();
    third.end();
    expect([await second.over, await third.over]).toEqual(['ran', 'ran']);
    expect(log.filter((line) => line.endsWith('begins'))).toHaveLength(3);
    expect(one.obtain('key').isAcquiredInThisProcess).toBe(false);
  });

  it.each(TRAVELLING_TYPES)(
    'of a %s lock, all but the last one never begin, and that one waits for the end of the first (P14)',
    async (type) => {
      const names = ['one', 'two', 'three', 'four'];
      const all = await registries(type, ...names);
      const log: string[] = [];
      const first = section(all[0] as RedisLockRegistry, 'one', log);
      await first.lease;
      const later = all.slice(1).map((registry, i) => section(registry, names[i + 1] as string, log));
      const outcomes = later.map(({ over }) => over);
      // Two of them are replaced while they wait.
      await until(async () => {
        const settled = await Promise.all(outcomes.map((over) => Promise.race([over, 'waits'])));
        return settled.filter((one) => one.startsWith('stolen by')).length === 2;
      });
      expect(log).toEqual(['one begins']);
      for (const { end } of later) end();
      first.end();
      expect(await first.over).toMatch(/^stolen by/);
      expect((await Promise.all(outcomes)).filter((one) => one === 'ran')).toHaveLength(1);
      expect(log.slice(0, 2)).toEqual(['one begins', 'one ends']);
      expect(log).toHaveLength(4);
      expect(await all[0]?.obtain('key').inspect()).toMatchObject({ held: false });
    },
  );

  it('enters after the grace where the task of the holder does not end', async () => {
    const [one, other] = (await registries('spin', 'one', 'other')) as [RedisLockRegistry, RedisLockRegistry];
    const log: string[] = [];
    const first = section(one, 'one', log);
    await first.lease;
    const second = section(other, 'other', log, { grace: 100 });
    await second.lease;
    expect(log).toEqual(['one begins', 'other begins']);
    first.end();
    second.end();
    expect([await first.over, await second.over]).toEqual(['stolen by other', 'ran']);
  });

  it('leaves the lock to expire where the task before is at work when the registry has closed (P8)', async () => {
    const registryKey = uniqueKey('replaced');
    const client = await createRealClient();
    const { registry: one } = createRegistry(await createRealClient(), { registryKey, inbox: true, name: 'one' });
    const other = createRegistry(client, { registryKey, name: 'other' });
    const log: string[] = [];
    const first = section(one, 'one', log);
    const lost = lossOf(await first.lease);
    const second = section(other.registry, 'other', log);
    await lost;
    await other.registry.close({ timeout: 50 });
    expect(await second.over).toMatch(/^RegistryClosedError/);
    // Whatever was sent over the connection of the closed registry was executed.
    await client.ping();
    expect(await one.obtain('key').inspect()).toMatchObject({ held: true, name: 'other' });
    expect(other.warnings).toEqual([expect.objectContaining({ code: 'CLOSED_WHILE_HELD' })]);
    first.end();
    expect(await first.over).toBe('stolen by other');
    expect(log).toEqual(['one begins', 'one ends']);
  });

  it.each(TRAVELLING_TYPES)(
    'waits for the holder of a %s lock that has no inbox, and for a lock that is kept (P14)',
    async (type) => {
      const [one, other] = (await registries(type, 'one', 'other')) as [RedisLockRegistry, RedisLockRegistry];
      const lease = await one.obtain('key').lock({ minHold: 400 });
      expect(await other.obtain('key').tryLock({ replace: true })).toBeNull();
      const waiting = other.obtain('key').lock({ replace: true });
      await sleep(50);
      expect(lease.remaining).toBeGreaterThan(0);
      await lease.unlock();
      expect(await other.obtain('other').tryLock({ replace: true })).not.toBeNull();
      await (await waiting).unlock();
      expect(await one.obtain('key').inspect()).toMatchObject({
        held: false,
        waiting: type === 'spin' ? undefined : expect.any(Number),
      });
    },
  );

  it.each(['spin', 'redisson'] as const)('waits for a holder of a %s lock that is of another program', async (type) => {
    const [one] = (await registries(type, 'one')) as [RedisLockRegistry];
    const client = await createRealClient();
    const name = one.obtain('key').names.lock;
    const java = 'dd7c0b3e-5c0b-4a3c-8f0a-0123456789ab';
    if (type === 'spin') await client.set(name, java, { PX: 60_000 });
    else await client.hSet(name, `${java}:42`, '1');
    expect(await one.obtain('key').tryLock({ replace: true })).toBeNull();
    expect(await one.obtain('key').ask()).toBe(false);
    const waiting = one.obtain('key').lock({ replace: true });
    await client.del(name);
    await (await waiting).unlock();
  });

  it('enters a free lock, and again inside its own scope, where it replaces nobody', async () => {
    const [one, other] = (await registries('fair', 'one', 'other')) as [RedisLockRegistry, RedisLockRegistry];
    await one.run('key', () => undefined, { replace: true });
    const log: string[] = [];
    const first = section(one, 'one', log);
    await first.lease;
    first.end();
    await other.run(
      'key',
      async (lease) => {
        await other.run('key', (nested) => nested.assertHeld(), { replace: true });
        await other
          .obtain('key')
          .lock({ replace: true })
          .then((nested) => nested.unlock());
        lease.assertHeld();
      },
      { replace: true },
    );
    await first.over;
  });

  it('adopts nothing afterwards: a job that was detached, and is replaced, drops out', async () => {
    const [one, other] = (await registries('pub-sub', 'one', 'other')) as [RedisLockRegistry, RedisLockRegistry];
    const text = await (await one.obtain('key').lock()).detach();
    const lease = await other.obtain('key').tryLock({ replace: true });
    await expect(one.adopt(text)).rejects.toMatchObject({ reason: 'stolen' });
    await lease?.unlock();
    await expect(one.adopt(text)).rejects.toMatchObject({ reason: 'expired' });
  });

  it.each([
    ['abort', (abort: AbortController) => abort.abort(new Error('enough')), 'enough'],
    ['close', (_: AbortController, registry: RedisLockRegistry) => void registry.close(), RegistryClosedError],
  ] as const)(
    'by an %s in its grace rejects at once, and nobody enters before the task has ended',
    async (_, end, error) => {
      const [one, other, third] = (await registries('pub-sub', 'one', 'other', 'third')) as RedisLockRegistry[] & {
        0: RedisLockRegistry;
      };
      const log: string[] = [];
      const first = section(one, 'one', log);
      const lost = lossOf(await first.lease);
      const abort = new AbortController();
      const leaving = (other as RedisLockRegistry)
        .obtain('key')
        .lock({ replace: true, grace: LONG, signal: abort.signal });
      await lost;
      const next = section(third as RedisLockRegistry, 'third', log, { replace: false });
      end(abort, other as RedisLockRegistry);
      await expect(leaving).rejects.toThrow(error);
      expect(await (third as RedisLockRegistry).obtain('key').inspect()).toMatchObject({ name: 'other' });
      expect(log).toEqual(['one begins']);
      first.end();
      next.end();
      expect(await next.over).toBe('ran');
      expect(log).toEqual(['one begins', 'one ends', 'third begins', 'third ends']);
    },
  );

  it('has the ttl that it asked for from when it enters on', async () => {
    const [one, other] = (await registries('spin', 'one', 'other')) as [RedisLockRegistry, RedisLockRegistry];
    const log: string[] = [];
    const first = section(one, 'one', log);
    await first.lease;
    const second = other.obtain('key').lock({ replace: true, grace: 700, ttl: 500 });
    const lease = await second;
    expect(lease.remaining).toBeGreaterThan(250);
    expect(lease.remaining).toBeLessThanOrEqual(500);
    expect((await lossOf(lease)).reason).toBe('expired');
    first.end();
    await first.over;
  });

  it('is refused by its type, by name, and an option that is wrong is an error', async () => {
    const client = await createRealClient();
    const { registry } = createRegistry(client, { lockType: 'redisson-fair' });
    const { registry: spin } = createRegistry(client);
    const replace = true;
    const only = 'only a lock of type spin, pub-sub, fair or redisson is replaced';
    for (const [call, type] of [
      [registry.obtain('key').lock({ replace }), 'redisson-fair'],
      [spin.semaphore('a', { permits: 2 }).tryLock({ replace }), 'semaphore'],
      [spin.readWrite('b').read.lock({ replace }), 'read'],
      [spin.readWrite('b').write.run(() => undefined, { replace }), 'write'],
      [spin.multi(['a', 'b']).lock({ replace }), 'multi'],
      [spin.segmented('c', { segments: 2 }).run(() => undefined, { replace }), 'segmented'],
    ] as const) {
      await expect(call).rejects.toThrow(
        new TypeError(`Expected \`replace\` to be false for the type ${type}, got true: ${only}`),
      );
    }
    await expect(spin.obtain('key').lock({ replace: 1 as never })).rejects.toThrow('`replace`');
    await expect(spin.obtain('key').lock({ replace, grace: -1 })).rejects.toThrow('`grace`');
  });
});

it('In memory, a call takes a lock from its holder too, and begins when that one has ended', async () => {
  const locks = new InMemoryLocks();
  const [one, other] = ['one', 'other'].map((name) => new InMemoryLockRegistry({ locks, name })) as [
    InMemoryLockRegistry,
    InMemoryLockRegistry,
  ];
  const log: string[] = [];
  const first = section(one, 'one', log);
  const lost = lossOf(await first.lease);
  const second = section(other, 'second', log);
  expect((await lost).reason).toBe('stolen');
  const third = section(one, 'third', log);
  expect(await second.over).toBe('stolen by one');
  first.end();
  expect(await first.over).toBe('stolen by other');
  await third.lease;
  third.end();
  expect(await third.over).toBe('ran');
  expect(log).toEqual(['one begins', 'one ends', 'third begins', 'third ends']);
  locks.steal('key');
  expect(await one.obtain('key').tryLock({ replace: true })).toBeNull();
  await Promise.all([one.close(), other.close()]);
});
