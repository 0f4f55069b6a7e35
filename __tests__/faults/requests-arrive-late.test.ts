import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { HoldableClient } from '../support/holdable-client';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms; long enough that no key ends by itself during a test. */
const TTL = 60_000;

/** ms after which a hold has to be confirmed before it is passed on. */
const NOT_FRESH = 60;

describePrivate.each(LOCK_TYPES)('A request about a %s lock arrives long after its connection was cut', (lockType) => {
  const redis = PrivateRedis.install();

  const start = async () => {
    const options = { registryKey: uniqueKey('late'), lockType, expireAfter: TTL };
    const client = new HoldableClient(await redis.connect());
    const slow = createRegistry(client, options);
    const other = createRegistry(await redis.connect(), options);
    const lock = slow.registry.obtain('key');
    // From now on the server knows the scripts: a late one is executed, and not unknown.
    const first = await lock.lock();
    const second = lock.lock();
    await first.renew();
    await sleep(NOT_FRESH);
    await first.unlock();
    await (await second).unlock();
    return { client, lock, other: other.registry.obtain('key'), name: slow.nameOf('key') };
  };

  /** A renewal that failed, and is still to arrive. */
  const renewalOf = async (client: HoldableClient, lease: Lease) => {
    const caught = client.catchNext('cut');
    const renewing = lease.renew().catch(() => undefined);
    const late = await caught;
    await renewing;
    return late;
  };

  /** Whatever the key is like, so that any change of it shows; its ttl runs. */
  const contentOf = (name: string) => redis.admin.dump(name);

  it.each([
    ['a release', false],
    ['a confirmation for the next caller, which has released it since', true],
  ])('%s: the next holder keeps the lock, and nothing is left when it releases it', async (_, hasNextCaller) => {
    const { client, lock, other, name } = await start();
    const lease = await lock.lock();
    const waiting = hasNextCaller ? lock.lock() : undefined;
    if (hasNextCaller) await sleep(NOT_FRESH); // it waits
    const caught = client.catchNext('cut');
    const unlocking = lease.unlock().catch((error) => expect(error).toMatchObject({ name: 'LockReleaseError' }));
    const late = await caught;
    await Promise.all([unlocking, waiting?.then((granted) => granted.unlock())]);
    const next = await other.lock({ waitTime: 10_000 });
    const before = await contentOf(name);
    // Where the release came by another script, the server may not know this one.
    await late
      .deliver()
      .catch((error) => expect(error).toMatchObject({ message: expect.stringContaining('NOSCRIPT') }));
    expect(await contentOf(name)).toEqual(before);
    await next.renew();
    await next.unlock();
    await until(async () => (await redis.admin.exists(name)) === 0);
  });

  it('A renewal that arrives long after its connection was cut: a lock that was released stays free, and the next holder keeps its ttl', async () => {
    const { client, lock, other, name } = await start();
    const lease = await lock.lock();
    const [late, later] = [await renewalOf(client, lease), await renewalOf(client, lease)];
    await lease.unlock();
    await late.deliver();
    expect(await redis.admin.exists(name)).toBe(0);
    const next = await other.lock({ ttl: 5_000 });
    await later.deliver();
    expect(await redis.admin.pTTL(name)).toBeLessThanOrEqual(5_000);
    await next.unlock();
  });

  it('An attempt of a waiter whose caller left, that arrives long after its connection was cut: the lock is soon free again (P2)', async () => {
    const { client, lock, other } = await start();
    const lease = await other.lock();
    const abort = new AbortController();
    const answered = client.answered;
    const rejected = expect(lock.lock({ signal: abort.signal })).rejects.toBe('left');
    await until(() => client.answered > answered + 1); // it waits
    const late = await client.catchNext('held');
    await lease.unlock();
    abort.abort('left');
    await rejected;
    await until(() => client.inFlight === 0);
    await late.deliver();
    await (await other.lock({ waitTime: 5_000 })).unlock();
  });

  it('An attempt of a waiter, which was granted the lock and released it meanwhile, that arrives long after its connection was cut: the lock is soon free again (P2)', async () => {
    const { client, lock, other } = await start();
    await other.lock({ ttl: 800 }); // never released
    const answered = client.answered;
    const waiting = lock.lock();
    await until(() => client.answered > answered + 1); // it waits
    const late = await client.catchNext('cut');
    await (await waiting).unlock();
    await late.deliver();
    await (await other.lock({ waitTime: 5_000 })).unlock();
  });

  it('An acquisition that was given up, that arrives long after its connection was cut: the lock is soon free again (P2)', async () => {
    const { client, lock, other, name } = await start();
    const caught = client.catchNext('held');
    const abort = new AbortController();
    const rejected = expect(lock.lock({ signal: abort.signal })).rejects.toBe('left');
    const late = await caught;
    abort.abort('left');
    await rejected;
    await late.deliver();
    const next = await other.lock({ waitTime: 5_000 });
    await next.unlock();
    expect(await redis.admin.exists(name)).toBe(0);
  });
});
