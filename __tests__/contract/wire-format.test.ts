import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistryOptions } from '../../lib';
import { machineDelay } from '../support/machine-delay';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until, WAIT_LIMIT } from '../support/until';
import { SLACK } from './timing';

/** The lock types that write the key as Spring Integration's RedisLockRegistry does. */
const lockTypes = ['spin'] as const;

describeReal.each(lockTypes)("The %s lock, as Spring Integration's RedisLockRegistry sees it", (lockType) => {
  let client: TestClient;
  let spring: TestClient;
  let registryKey: string;
  let name: string;

  const registry = (options: Partial<RedisLockRegistryOptions> = {}) =>
    createRegistry(client, { registryKey, lockType, idleBetweenTries: 10, ...options }).registry;

  beforeEach(async () => {
    client ??= await createRealClient();
    spring ??= await createRealClient();
    registryKey = uniqueKey('spring');
    name = `${registryKey}:order:42`;
  });

  it('is a string at registryKey:key, with an expiry, and nothing else', async () => {
    const lease = await registry({ expireAfter: 30_000 }).obtain('order:42').lock();
    expect(await spring.keys(`*${registryKey}*`)).toEqual([name]);
    expect(await spring.type(name)).toBe('string');
    const life = await spring.pTTL(name);
    expect(life).toBeLessThanOrEqual(30_000);
    expect(life).toBeGreaterThan(30_000 - SLACK - machineDelay());
    await lease.unlock();
    expect(await spring.keys(`*${registryKey}*`)).toEqual([]);
  });

  it('publishes its release on the channel registryKey-channel:name, with the name as the message', async () => {
    const subscriber = await createRealClient();
    const messages: [string, string][] = [];
    await subscriber.pSubscribe(
      `${registryKey}-channel:*`,
      (message, channel) => void messages.push([channel, message]),
    );
    let keyAtMessage: number | undefined;
    await subscriber.subscribe(`${registryKey}-channel:${name}`, async () => {
      keyAtMessage = await spring.exists(name);
    });
    await registry()
      .obtain('order:42')
      .run(() => expect(messages).toEqual([]));
    await until(() => messages.length > 0 && keyAtMessage !== undefined);
    expect(messages).toEqual([[`${registryKey}-channel:${name}`, name]]);
    expect(keyAtMessage).toBe(0);
  });

  it('publishes nothing when there was nothing to release', async () => {
    const subscriber = await createRealClient();
    const messages: string[] = [];
    await subscriber.pSubscribe(`${registryKey}-channel:*`, (message) => void messages.push(message));
    const gone = await registry().obtain('gone').lock();
    const stolen = await registry().obtain('stolen').lock();
    await spring.del(`${registryKey}:gone`);
    await spring.set(`${registryKey}:stolen`, 'spring', { PX: 1_000 });
    await expect(gone.unlock()).rejects.toMatchObject({ reason: 'expired' });
    await expect(stolen.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    await registry().run('last', () => undefined);
    await until(() => messages.length > 0);
    expect(messages).toEqual([`${registryKey}:last`]);
  });

  it('is refused while a Spring client holds the key, and acquired after that client releases it', async () => {
    await spring.set(name, '0b3c1b60-7d1e-4c0b-9f0e-2d1f7a1c9f11', { PX: 60_000, condition: 'NX' });
    const lock = registry().obtain('order:42');
    expect(await lock.tryLock()).toBeNull();
    const waiting = lock.lock();
    expect(await registry().obtain('order:42').tryLock({ waitTime: 400 })).toBeNull();
    await spring.unlink(name); // spin locks of Spring publish nothing
    const lease = await waiting;
    expect(await spring.set(name, 'spring', { PX: 60_000, condition: 'NX' })).toBeNull();
    await lease.unlock();
    expect(await spring.set(name, 'spring', { PX: 60_000, condition: 'NX' })).toBe('OK');
    await spring.del(name);
  });

  it('keeps polling while a foreign key without expiry exists', async () => {
    await spring.set(name, 'a user of redis-cli');
    let entered = false;
    const waiting = registry()
      .obtain('order:42')
      .lock()
      .then((lease) => {
        entered = true;
        return lease;
      });
    expect(await registry().obtain('order:42').tryLock({ waitTime: 400 })).toBeNull();
    expect(entered).toBe(false);
    expect(await spring.get(name)).toBe('a user of redis-cli');
    expect(await spring.pTTL(name)).toBe(-1);
    await spring.del(name);
    await (await waiting).unlock();
  });

  it('gets its expiry back at the next renewal when it was removed or shortened; a longer one counts (P6)', async () => {
    const TTL = 3_000;
    const lease = await registry({ expireAfter: TTL }).obtain('order:42').lock();
    await spring.persist(name);
    // PTTL is -1 after PERSIST, which is less than any ttl.
    await until(async () => (await spring.pTTL(name)) > 0, { within: WAIT_LIMIT });
    await spring.pExpire(name, 0.8 * TTL);
    await until(async () => (await spring.pTTL(name)) > 0.8 * TTL, { within: WAIT_LIMIT });
    await spring.pExpire(name, 60_000);
    await until(() => lease.remaining > TTL, { within: WAIT_LIMIT });
    expect(await spring.pTTL(name)).toBeGreaterThan(lease.remaining);
    await lease.unlock();
    expect(await spring.exists(name)).toBe(0);
  });

  it('keeps its fencing counter beside it, in its hash slot, with an expiry of its own', async () => {
    const lease = await registry({ fencing: true }).obtain('order:42').lock();
    expect((await spring.keys(`*${registryKey}*`)).sort()).toEqual([name, `{${name}}:fence`].sort());
    expect(await spring.get(`{${name}}:fence`)).toBe(String(lease.fencingToken));
    expect(await spring.pTTL(`{${name}}:fence`)).toBeGreaterThan(23 * 60 * 60 * 1_000);
    await lease.unlock();
  });

  it('issues higher tokens also after the counter was lost, or is ahead of the clock (P10)', async () => {
    const lock = registry({ fencing: true }).obtain('order:42');
    const first = (await lock.run((lease) => lease.fencingToken)) as number;
    await spring.del(`{${name}}:fence`);
    const second = (await lock.run((lease) => lease.fencingToken)) as number;
    expect(second).toBeGreaterThan(first);
    const ahead = second + 3_600_000_000; // an hour: the server's clock was set back
    await spring.set(`{${name}}:fence`, String(ahead), { PX: 60_000 });
    expect(await lock.run((lease) => lease.fencingToken)).toBe(ahead + 1);
    expect(await lock.run((lease) => lease.fencingToken)).toBe(ahead + 2);
  });

  it('issues no token for a refused attempt', async () => {
    await registry({ fencing: true }).run('order:42', async ({ fencingToken }) => {
      expect(await registry({ fencing: true }).obtain('order:42').tryLock({ waitTime: 400 })).toBeNull();
      expect(await spring.get(`{${name}}:fence`)).toBe(String(fencingToken));
    });
  });
});
