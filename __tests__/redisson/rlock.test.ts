import { beforeEach, expect, it } from '@jest/globals';
import { RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { SLACK } from '../contract/timing';
import { machineDelay } from '../support/machine-delay';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until, WAIT_LIMIT } from '../support/until';

/** An owner value of Redisson: client UUID and thread id. */
const STRANGER = '5b1b0d4e-0a3c-4f5e-9d3a-3f9a6a3a1c11:42';

describeReal('The redisson lock, as RLock sees it', () => {
  let client: TestClient;
  let java: TestClient;
  let key: string;

  const registry = (options: Partial<RedisLockRegistryOptions> = {}) =>
    createRegistry(client, { registryKey: '', lockType: 'redisson', idleBetweenTries: 10, ...options }).registry;

  beforeEach(async () => {
    client ??= await createRealClient();
    java ??= await createRealClient();
    key = uniqueKey('rlock');
  });

  it('is a hash with one field, "<client id>:<number>", whose value is the hold count, and lives for 30 s', async () => {
    const lease = await registry().obtain(key).lock();
    const fields = await java.hGetAll(key);
    expect(Object.keys(fields)).toHaveLength(1);
    expect(Object.keys(fields)[0]).toMatch(/^[^:]+:\d+$/);
    expect(Object.values(fields)).toEqual(['1']);
    const life = await java.pTTL(key);
    expect(life).toBeLessThanOrEqual(30_000);
    expect(life).toBeGreaterThan(30_000 - SLACK - machineDelay());
    await lease.unlock();
    expect(await java.exists(key)).toBe(0);
  });

  it('is named by the key alone, or by registryKey and key', async () => {
    await registry({ registryKey: 'mapped' }).obtain(key).lock();
    expect(await java.exists(`mapped:${key}`)).toBe(1);
    expect(await java.exists(key)).toBe(0);
    expect(() => new RedisLockRegistry(client, { registryKey: '', lockType: 'pub-sub' })).toThrow(TypeError);
  });

  it.each([
    ['no braces', 'name', 'redisson_lock__channel:{name}'],
    ['a hash tag', '{tag}name', 'redisson_lock__channel:{tag}name'],
    ['a brace', 'na{me', 'redisson_lock__channel:na{me'],
  ])('tells its release by "0" on the channel of a name with %s', async (_, name, channel) => {
    const [ours, theirs] = [`${key}${name}`, channel.replace(/name|na\{me|\{tag\}name/, `${key}$&`)];
    const messages: string[] = [];
    const listener = await createRealClient();
    await listener.subscribe(theirs, (message) => void messages.push(message));
    await registry().run(ours, () => undefined);
    await until(() => messages.length > 0);
    expect(messages).toEqual(['0']);
  });

  it("waits for RLock's message", async () => {
    await java.hSet(key, STRANGER, '1');
    await java.pExpire(key, 60_000);
    const waiting = registry({ idleBetweenTries: 60_000 }).obtain(key).lock();
    const channel = `redisson_lock__channel:{${key}}`;
    await until(async () => (await java.pubSubNumSub(channel))[channel]);
    await java.del(key);
    await java.publish(channel, '0');
    await (await waiting).unlock();
  });

  it('polls where no release is published, as with RSpinLock, and where the key has no expiry', async () => {
    await java.hSet(key, STRANGER, '1');
    const waiting = registry().obtain(key).lock({ waitTime: WAIT_LIMIT });
    await java.del(key);
    await (await waiting).unlock();
  });

  it('detects by renewal and by unlock that RLock has acquired it after a loss (P6)', async () => {
    const [first, second] = ['renewed', 'unlocked'].map((name) => `${key}:${name}`) as [string, string];
    const leases = await Promise.all([first, second].map((name) => registry().obtain(name).lock()));
    for (const name of [first, second]) {
      await java.del(name);
      await java.hSet(name, STRANGER, '1');
      await java.pExpire(name, 60_000);
    }
    await expect(leases[0]?.renew()).rejects.toMatchObject({ reason: 'stolen' });
    await expect(leases[1]?.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    for (const name of [first, second]) expect(await java.hGetAll(name)).toEqual({ [STRANGER]: '1' });
  });

  it('and the string types reject each other’s keys at once, with the reason (P13)', async () => {
    const spin = registry({ lockType: 'spin', registryKey: 'string' });
    const redisson = registry({ registryKey: 'string' });
    await spin.run(key, () => expect(redisson.obtain(key).lock()).rejects.toThrow(/WRONGTYPE/));
    await redisson.run(key, () => expect(spin.obtain(key).lock()).rejects.toThrow(/WRONGTYPE/));
  });

  it('continues the tokens of RFencedLock, and issues none for a refused attempt', async () => {
    const token = `redisson_lock_token:{${key}}`;
    await java.set(token, '41');
    await registry({ fencing: true }).run(key, async ({ fencingToken }) => {
      expect(fencingToken).toBe(42);
      expect(await registry({ fencing: true }).obtain(key).tryLock({ waitTime: 400 })).toBeNull();
    });
    expect(await java.get(token)).toBe('42');
    expect(await java.pTTL(token)).toBe(-1);
  });
});
