import { describe, expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis, repeatsByItself } from '../support/private-redis';
import { createRegistry, lossOf, rejection } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 1_000;

describePrivate.each(CLIENT_KINDS)('%s loses its connection', (kind) => {
  const redis = PrivateRedis.install();

  /** A registry behind a proxy. The server knows the scripts already: a request that is lost is never their NOSCRIPT. */
  const open = async (options: Parameters<typeof createRegistry>[1] = {}) => {
    const proxy = await redis.proxy();
    const locks = createRegistry(await clientKinds[kind](proxy.address), { fencing: true, ...options });
    const lease = await locks.registry.obtain('warm-up').lock();
    await lease.renew();
    await lease.unlock();
    return { ...locks, proxy, lock: locks.registry.obtain('key'), name: locks.nameOf('key') };
  };

  describe('while it acquires', () => {
    it.each(['loseReply', 'loseRequest'] as const)(
      'P1 P11: %s: acquired once, within one reconnect, with the token of the first execution',
      async (lose) => {
        const { proxy, warnings, lock, name } = await open();
        const token = () => redis.admin.get(`{${name}}:fence`);
        const before = proxy.connections;
        const lost = proxy[lose](name);
        const locking = lock.lock();
        await lost;
        const first = lose === 'loseReply' ? await token() : undefined;
        const lease = await locking;
        expect(proxy.connections - before).toBeLessThanOrEqual(1);
        expect(await token()).toBe(String(lease.fencingToken));
        if (first !== undefined) expect(first).toBe(String(lease.fencingToken));
        await lease.unlock();
        expect(await redis.admin.exists(name)).toBe(0);
        expect(warnings).toEqual([]);
      },
    );

    if (!repeatsByItself(kind)) {
      it('P2: a single attempt whose reply is lost rejects, and its key is deleted', async () => {
        const { proxy, lock, name } = await open();
        const lost = proxy.loseReply(name);
        await expect(lock.tryLock()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
        await lost;
        await until(async () => (await redis.admin.exists(name)) === 0);
      });
    }

    it('P2: a caller that aborted before its reply was lost leaves no key', async () => {
      const { proxy, lock, name } = await open();
      proxy.replies.hold = true;
      const stop = new AbortController();
      const rejected = expect(lock.lock({ signal: stop.signal })).rejects.toBe('aborted');
      await until(() => redis.admin.exists(name));
      stop.abort('aborted');
      await rejected;
      // redis 5 assigns replies to the wrong commands after a reset in the turn in which a command is sent. So the removal
      // is on its way by then.
      proxy.requests.hold = true;
      const { bytes } = proxy.requests;
      await until(() => proxy.requests.bytes > bytes);
      proxy.reset();
      proxy.requests.hold = proxy.replies.hold = false;
      await until(async () => (await redis.admin.exists(name)) === 0);
    });
  });

  describe('while it renews', () => {
    it.each(['loseReply', 'loseRequest'] as const)(
      'P6: %s: repeated until it succeeds, without a loss',
      async (lose) => {
        const { proxy, warnings, lock, name } = await open({ expireAfter: 3 * TTL });
        const lease = await lock.lock();
        await proxy[lose](name);
        const before = lease.remaining;
        await until(() => lease.remaining > before);
        expect(lease.signal.aborted).toBe(false);
        expect(await redis.admin.pTTL(name)).toBeGreaterThan(lease.remaining - 5);
        await lease.unlock();
        expect(warnings).toEqual([]);
      },
    );

    it('P4 P6: every time: lost as unconfirmed at the deadline, and not before', async () => {
      const { proxy, lock, name } = await open({ expireAfter: TTL });
      const startedAt = performance.now();
      const lease = await lock.lock();
      const loss = lossOf(lease);
      let over = false;
      const cutting = (async () => {
        while (!over) await Promise.race([proxy.loseRequest(name), loss]);
      })();
      const { reason, at } = await loss;
      over = true;
      await cutting;
      expect(reason).toBe('unconfirmed');
      expect(at - startedAt).toBeGreaterThan(TTL - 10);
      expect(at - startedAt).toBeLessThan(TTL + 200 + machineDelay());
      await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'unconfirmed' });
    });

    if (!repeatsByItself(kind)) {
      it('P6: an explicit renewal rejects, and does not change `remaining`', async () => {
        const { proxy, lock, name } = await open();
        const lease = await lock.lock({ ttl: 10_000 });
        const lost = proxy.loseReply(name);
        await expect(lease.renew(20_000)).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
        await lost;
        expect(lease.remaining).toBeLessThan(10_000);
        expect(lease.remaining).toBeGreaterThan(5_000);
        await lease.renew(20_000);
        expect(lease.remaining).toBeGreaterThan(15_000);
        await lease.unlock();
      });
    }
  });

  it('P7: after its execution: a warning and no loss, and a second unlock does nothing', async () => {
    const { proxy, warnings, lock, name } = await open();
    const lease = await lock.lock();
    const lost = proxy.loseReply(name);
    await lease.unlock();
    await lost;
    expect(await redis.admin.exists(name)).toBe(0);
    expect(warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN', key: 'key' }]);
    expect(lease.signal.aborted).toBe(false);
    await redis.admin.set(name, 'another');
    await lease.unlock();
    expect(await redis.admin.get(name)).toBe('another');
  });

  it('P7: after its execution, with a new owner at once: the new owner keeps the key', async () => {
    const { proxy, warnings, lock, name } = await open();
    const lease = await lock.lock();
    proxy.replies.hold = true;
    const unlocking = lease.unlock();
    await until(async () => (await redis.admin.exists(name)) === 0);
    await redis.admin.set(name, 'another');
    proxy.reset();
    proxy.replies.hold = false;
    await unlocking;
    expect(await redis.admin.get(name)).toBe('another');
    expect(warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN' }]);
  });

  it('P7: before its execution: repeated, and released without a warning', async () => {
    const { proxy, warnings, lock, name } = await open();
    const lease = await lock.lock();
    const lost = proxy.loseRequest(name);
    await lease.unlock();
    await lost;
    expect(await redis.admin.exists(name)).toBe(0);
    expect(warnings).toEqual([]);
  });

  it('P7: permanently: settles within its bound, frees the local turn, and the key is deleted when Redis is back', async () => {
    const { proxy, lock, name } = await open({ commandTimeout: 1_000 });
    const lease = await lock.lock();
    proxy.refuse();
    proxy.reset();
    const unlocking = rejection(lease.unlock(), { name: 'LockReleaseError', key: 'key' });
    const next = lock.lock({ waitTime: 10_000 });
    expect(await unlocking).toBeLessThan(1_000 + 300 + machineDelay());
    expect(await redis.admin.exists(name)).toBe(1);
    await proxy.accept();
    // The same process acquires as soon as its late release was executed, or its own owner value is recognised.
    await (await next).unlock();
    await until(async () => (await redis.admin.exists(name)) === 0);
  });
});
