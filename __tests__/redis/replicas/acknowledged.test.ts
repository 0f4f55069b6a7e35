import type { LookupFunction } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createClient } from 'redis';
import { CannotAcquireLockError, type Lease, LockLostError, NotReplicatedError } from '../../../lib';
import { LOCK_TYPES } from '../../support/lock-types';
import { describePrivate } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { callsOf } from '../../support/server-load';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';
import { ReplicaFixture } from './replica-fixture';

/** ms; long enough that a busy machine replicates in time. */
const LONG = 2_000;

describePrivate('a lock with minReplicas', () => {
  const fixture = ReplicaFixture.install(1);

  afterEach(() => fixture.follow());

  const tryToTake = async (lease: Promise<Lease | null>) => {
    const error = await lease.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(CannotAcquireLockError);
    return (error as Error).cause as NotReplicatedError;
  };

  describe.each(LOCK_TYPES)('of type %s', (lockType) => {
    const options = { lockType, minReplicas: 1, replicaTimeout: LONG };

    it('A lock with minReplicas is on the replica when the caller has it, each time that it goes to another caller', async () => {
      const registryKey = uniqueKey();
      const registries = [
        await fixture.registry({ ...options, registryKey }),
        await fixture.registry({ ...options, registryKey }),
      ];
      const replica = await fixture.connect(fixture.replica);
      const master = await fixture.connect();
      fixture.lagBy(30);
      let entered = 0;
      const take = (i: number) =>
        registries[i % 2]?.registry.run('key', async () => {
          // With the owner: the key itself is there all the time. It is a string or a hash.
          const dump = ['DUMP', `${registryKey}:key`];
          expect(await replica.sendCommand(dump)).toEqual(await master.sendCommand(dump));
          entered++;
        });
      await Promise.all(Array.from({ length: 12 }, (_, i) => take(i)));
      expect(entered).toBe(12);
    });

    it('A lock with minReplicas is not acquired, and not left behind, while the replica lags: the error has both numbers', async () => {
      const { registry, nameOf } = await fixture.registry({ ...options, replicaTimeout: 50 });
      fixture.holdUp();
      const cause = await tryToTake(registry.obtain('key').tryLock());
      expect(cause).toBeInstanceOf(NotReplicatedError);
      expect([cause.wanted, cause.acknowledged]).toEqual([1, 0]);
      expect(cause.message).toBe('0 of 1 replicas acknowledged the acquisition within 50 ms');
      expect(await (await fixture.connect()).exists(nameOf('key'))).toBe(0);
      const late = await tryToTake(registry.obtain('key').lock({ waitTime: 300 }));
      expect([late.wanted, late.acknowledged]).toEqual([1, 0]);
    });

    it('A lock with minReplicas is acquired by a waiting caller as soon as the replica is up to date; a warning says what it waits for', async () => {
      const { registry, nameOf, warnings } = await fixture.registry({ ...options, replicaTimeout: 50 });
      fixture.holdUp();
      const waiting = registry.obtain('key').lock();
      const other = registry.obtain('key').lock();
      await until(() => warnings.length > 0);
      expect(warnings.map(({ code }) => code)).toEqual(['NOT_REPLICATED']);
      await fixture.follow();
      const first = await Promise.race([waiting, other]);
      first.assertHeld();
      await first.unlock();
      for (const lease of await Promise.all([waiting, other])) if (lease !== first) await lease.unlock();
      expect(await (await fixture.connect()).exists(nameOf('key'))).toBe(0);
    });

    it('A lock with minReplicas is renewed and released by its holder though the replica lags, and the next caller waits for the replica', async () => {
      const registryKey = uniqueKey();
      const holder = await fixture.registry({ ...options, registryKey, replicaTimeout: 50 });
      const { registry } = await fixture.registry({ ...options, registryKey, replicaTimeout: 50 });
      const held = await holder.registry.obtain('key').lock();
      const next = registry.obtain('key').lock();
      let isIn = false;
      void next.then(() => (isIn = true));
      fixture.holdUp();
      await held.renew();
      await held.unlock();
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(isIn).toBe(false);
      await fixture.follow();
      await (await next).unlock();
    });
  });

  it('A lease ends without a warning where its script gives a waiting caller a grant that the replica does not have', async () => {
    const options = { lockType: 'fair', minReplicas: 1, replicaTimeout: 50, idleBetweenTries: 1_000 } as const;
    const { registry, warnings } = await fixture.registry(options);
    for (const lock of [registry.obtain('key'), registry.semaphore('permit', { permits: 1 })]) {
      const held = await lock.lock();
      const next = lock.lock();
      await sleep(200);
      fixture.holdUp();
      await held.unlock();
      await fixture.follow();
      await (await next).unlock();
    }
    expect(new Set(warnings.map(({ code }) => code))).toEqual(new Set(['NOT_REPLICATED']));
  });

  it('A lease that was lost is reported lost, though its script gives a waiting caller a grant that the replica does not have', async () => {
    // The waiting caller does not poll meanwhile.
    const options = { minReplicas: 1, replicaTimeout: 50, idleBetweenTries: 1_000 };
    const { registry, nameOf, warnings } = await fixture.registry(options);
    const semaphore = registry.semaphore('permit', { permits: 1 });
    const held = await semaphore.lock();
    const next = semaphore.lock();
    await sleep(200);
    fixture.holdUp();
    await (await fixture.connect()).del(nameOf('permit'));
    await expect(held.unlock()).rejects.toBeInstanceOf(LockLostError);
    await fixture.follow();
    await (await next).unlock();
    expect(warnings.map(({ code }) => code)).toEqual(['NOT_REPLICATED']);
  });

  it('A lock with minReplicas says so to each caller of a batch, but not to those that were refused', async () => {
    const registryKey = uniqueKey();
    const holder = await fixture.registry({ registryKey });
    const { registry } = await fixture.registry({ registryKey, minReplicas: 1, replicaTimeout: LONG });
    const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`);
    // Releases prove that one server has all keys: acquisitions go together after that.
    for (let round = 0; round < 2; round++) {
      const leases = await Promise.all(keys.map((key) => registry.obtain(key).lock()));
      await Promise.all(leases.map((lease) => lease.unlock()));
    }
    const held = await holder.registry.obtain('key 3').lock();
    const admin = await fixture.connect();
    await admin.configResetStat();
    const together = await Promise.all(keys.map((key) => registry.obtain(key).tryLock()));
    expect([await callsOf(admin, 'wait'), await callsOf(admin, 'evalsha')]).toEqual([1, 1]);
    expect(together.map((lease) => lease === null)).toEqual(keys.map((key) => key === 'key 3'));
    await Promise.all(together.map((lease) => lease?.unlock()));
    const strict = await fixture.registry({ registryKey, minReplicas: 1, replicaTimeout: 50 });
    fixture.holdUp();
    const outcomes = await Promise.allSettled(keys.map((key) => strict.registry.obtain(key).tryLock()));
    expect(outcomes.map(({ status }) => status)).toEqual(
      keys.map((key) => (key === 'key 3' ? 'fulfilled' : 'rejected')),
    );
    await held.unlock();
  });

  it('A lock with minReplicas leaves no connection behind that is made when its registry is closed already', async () => {
    const { port } = fixture.master.address;
    let resolved = (): void => undefined;
    let isSlow = false;
    const lookup: LookupFunction = (_host, _options, callback) => {
      const resolve = () => callback(null, [{ address: '127.0.0.1', family: 4 }]);
      if (isSlow) resolved = resolve;
      else resolve();
    };
    const options = { name: 'slowly-resolved', maintNotifications: 'disabled' } as const;
    const client = createClient({ ...options, socket: { host: 'master.test', port, lookup } });
    await client.on('error', () => {}).connect();
    const admin = await fixture.connect();
    const connections = async () => String(await admin.sendCommand(['CLIENT', 'LIST'])).split(options.name).length - 1;
    isSlow = true;
    const { registry } = createRegistry(client, { minReplicas: 1, replicaTimeout: 10, commandTimeout: 100 });
    await tryToTake(registry.obtain('key').tryLock());
    await registry.close();
    resolved();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await connections()).toBe(1);
    client.destroy();
  });
});
