import { expect, it } from '@jest/globals';
import type { EvalOptions, Lease, RedisClient } from '../../lib';
import { block } from '../support/block';
import { DISTINCT_TYPES } from '../support/lock-types';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { scriptsRun } from '../support/server-load';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms */
const SHORT = 100;

describePrivate('the event loop is blocked for longer than the ttl', () => {
  const redis = PrivateRedis.install();

  it.each([true, false])(
    'P5: the lease reports its end in the first statement afterwards (renewed: %s)',
    async (renew) => {
      const { registry, nameOf } = createRegistry(await redis.connect());
      const lock = registry.obtain('key');
      const lease = await lock.lock({ ttl: SHORT, renew });
      block(SHORT + 20);
      expect(lease.remaining).toBe(0);
      expect(lock.isAcquiredInThisProcess).toBe(false);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ name: 'LockLostError' }));
      expect(lease.signal.aborted).toBe(true);
      await redis.admin.set(nameOf('key'), 'another');
      await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
      // The cleanup of the lost lease does not touch the key of the next owner.
      await (await registry.obtain('other').lock()).unlock();
      expect(await redis.admin.get(nameOf('key'))).toBe('another');
      await redis.admin.del(nameOf('key'));
    },
  );
});

/** ms; the lease is over after it. A renewed lease asks at a third of it, and then has two thirds left. */
const TTL = 1_500;

/** A client that calls back when the next command has been written to the socket, and before its answer can be read. */
function watched(client: RedisClient) {
  const watch = (answer: Promise<unknown>): Promise<unknown> => {
    one.issued++;
    const { onceWritten } = one;
    one.onceWritten = undefined;
    // node-redis writes in an immediate of its own, which is the earlier one.
    if (onceWritten !== undefined) setImmediate(onceWritten);
    return answer;
  };
  const one = {
    onceWritten: undefined as (() => void) | undefined,
    /** Commands that were issued. */
    issued: 0,
    eval: (script: string, options?: EvalOptions) => watch(client.eval(script, options)),
    evalSha: (sha1: string, options?: EvalOptions) => watch(client.evalSha(sha1, options)),
  };
  return one;
}

/** What the first statements after a pause of the process find. */
function observe(lease: Lease) {
  const { remaining } = lease;
  let reason: unknown = 'held';
  try {
    lease.assertHeld();
  } catch (error) {
    reason = (error as { reason?: unknown }).reason;
  }
  return { remaining, reason, aborted: lease.signal.aborted };
}

const unconfirmed = { remaining: 0, reason: 'unconfirmed', aborted: false };

describePrivate('A lock whose holder computes past a deadline', () => {
  const redis = PrivateRedis.install();

  const start = async (connecting = redis.connect()) => {
    const client = watched(await connecting);
    const { registry } = createRegistry(client);
    // From now on the server knows the scripts.
    const lease = await registry.obtain('warm-up').lock();
    await lease.renew();
    await lease.unlock();
    return { client, registry };
  };

  /** Blocks the event loop until the lease is over, as soon as a renewal is written, and says what is found then. */
  const blockedAfterRenewal = (client: ReturnType<typeof watched>, lease: Lease, renew: () => void) =>
    new Promise<ReturnType<typeof observe>>((resolve) => {
      client.onceWritten = () => {
        block(lease.remaining + 30);
        resolve(observe(lease));
      };
      renew();
    });

  it('A lock whose holder computes past a deadline is unconfirmed until the answer to a renewal by hand is read, and held then', async () => {
    const { client, registry } = await start();
    const lease = await registry.obtain('key').lock({ ttl: TTL });
    let renewing: Promise<void> | undefined;
    const found = await blockedAfterRenewal(client, lease, () => {
      renewing = lease.renew(60_000);
      renewing.catch(() => undefined); // it settles below
    });
    expect(found).toEqual(unconfirmed);
    await renewing;
    lease.assertHeld();
    expect(lease.remaining).toBeGreaterThan(10_000);
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
  });

  it('A lock whose holder computes past a deadline is unconfirmed until the answer to a renewal by the watchdog is read, and held then', async () => {
    const { client, registry } = await start();
    const lease = await registry.obtain('key').lock({ ttl: TTL, renew: true });
    const found = await blockedAfterRenewal(client, lease, () => undefined);
    expect(found).toEqual(unconfirmed);
    await until(() => lease.remaining > 0 || lease.signal.aborted);
    lease.assertHeld();
    await lease.unlock();
  });

  it('A lock whose holder computes past a deadline is renewed again after a block that outlasted the timeout of a renewal', async () => {
    const { client, registry } = await start();
    const lease = await registry.obtain('key').lock({ ttl: 1_500, renew: true });
    await new Promise<void>((resolve) => {
      client.onceWritten = () => {
        // It is sent at a third of the ttl, and has half of the rest to be answered.
        block(600);
        resolve();
      };
    });
    const issued = client.issued;
    await until(() => client.issued >= issued + 2 || lease.signal.aborted);
    lease.assertHeld();
    await lease.unlock();
  });

  it('A lock whose holder computes past a deadline is lost once the event loop has found no answer to its renewal', async () => {
    const proxy = await redis.proxy();
    const { client, registry } = await start(connectTo(proxy.address));
    const lease = await registry.obtain('key').lock({ ttl: TTL });
    proxy.replies.swallow = true;
    const found = await blockedAfterRenewal(client, lease, () => {
      lease.renew(60_000).catch(() => undefined);
    });
    expect(found).toEqual(unconfirmed);
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ name: 'LockLostError' });
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ name: 'LockLostError' }));
  });

  it.each(DISTINCT_TYPES)(
    'A %s lock is held after a task that computed for longer than a hand-over may stay unclaimed',
    async (lockType) => {
      const registryKey = uniqueKey('unread');
      const [holder, other] = await Promise.all(
        [0, 1].map(async () => createRegistry(await redis.connect(), { registryKey, lockType }).registry),
      );
      const held = await holder?.obtain('key').lock();
      const before = await scriptsRun(redis.admin);
      const working = other?.run('key', async (lease) => {
        block(1_200);
        const found = observe(lease);
        await until(() => lease.remaining > 0 || lease.signal.aborted);
        return { found, later: observe(lease) };
      });
      await until(async () => (await scriptsRun(redis.admin)) > before); // it was refused, and waits
      await held?.unlock();
      const observed = await working;
      expect(observed?.found.aborted).toBe(false);
      expect(observed?.later).toMatchObject({ reason: 'held', aborted: false });
      expect(observed?.later.remaining).toBeGreaterThan(10_000);
    },
  );
});
