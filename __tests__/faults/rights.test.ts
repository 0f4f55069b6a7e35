import { beforeEach, expect, it } from '@jest/globals';
import { isRightRefused } from '../../lib/redis/failure';
import { DISTINCT_TYPES, LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** Commands of the scripts without which some type cannot lock. */
const COMMANDS = ['time', 'pexpire', 'pttl', 'zadd', 'hset'];

/** ms; nothing that is left expires by itself during a test. */
const TTL = 120_000;

describePrivate.each(DISTINCT_TYPES)('A user with %s locks loses its rights for a while', (lockType) => {
  const redis = PrivateRedis.install();
  let registryKey: string;

  beforeEach(async () => {
    registryKey = uniqueKey('rights');
    await setRights('+@all');
  });

  async function setRights(...rights: string[]): Promise<void> {
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', 'reset', 'on', '>x', '~*', '&*', ...rights]);
  }

  async function open() {
    const client = await redis.connect({ username: 'locks', password: 'x' });
    return createRegistry(client, { registryKey, lockType, expireAfter: TTL });
  }

  async function left(): Promise<string[]> {
    return redis.admin.keys(`*${registryKey}*`);
  }

  it('P2: what a waiter that gave up left in Redis is removed when the rights are back', async () => {
    const holder = createRegistry(await redis.connect(), { registryKey, lockType, expireAfter: TTL });
    const held = await holder.registry.obtain('key').lock();
    const { registry } = await open();
    const aborted = new AbortController();
    const waiting = registry.obtain('key').lock({ signal: aborted.signal });
    const settled = expect(waiting).rejects.toThrow();
    // Answered over the same connection after the first attempt of the waiter.
    expect(await registry.obtain('key').tryLock()).toBeNull();
    await setRights('+@all', '-@scripting');
    aborted.abort(new Error('gave up'));
    await settled;
    await holder.registry.close({ timeout: 0 });
    await redis.admin.del(holder.nameOf('key'));
    await setRights('+@all');
    await until(async () => (await left()).length === 0, { within: 15_000 });
    await held.unlock().catch(() => undefined);
  });

  it.each(['scripts', 'reads'])('P2 P6 P7: an unlock without the right to %s is repeated', async (what) => {
    const { registry } = await open();
    const lease = await registry.obtain('key').lock();
    await setRights('+@all', ...(what === 'scripts' ? ['-@scripting'] : ['-get', '-hexists']));
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
    expect(await left()).not.toEqual([]);
    await setRights('+@all');
    await until(async () => (await left()).length === 0, { within: 15_000 });
  });
});

describePrivate.each(LOCK_TYPES)('A user who may not run a command of the scripts of a %s lock', (lockType) => {
  const redis = PrivateRedis.install();

  it.each(COMMANDS)('%s: gets the lock, or an error and nothing is left in Redis', async (command) => {
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'some', 'reset', 'on', '>x', '~*', '&*', '+@all', `-${command}`]);
    const registryKey = uniqueKey('rights');
    const client = await redis.connect({ username: 'some', password: 'x' });
    const { registry } = createRegistry(client, { registryKey, lockType, fencing: true });
    const outcome = await registry
      .obtain('key')
      .tryLock()
      .then(
        (lease) => lease?.unlock().then(() => 'granted'),
        (error: Error) => error,
      );
    if (outcome !== 'granted') {
      expect(outcome).toMatchObject({ name: 'CannotAcquireLockError' });
      expect([outcome, isRightRefused((outcome as Error).cause)]).toEqual([outcome, true]);
    }
    // A counter of fencing tokens may outlive a lock.
    const left = async () => (await redis.admin.keys(`*${registryKey}*`)).filter((key) => !/fence|token/.test(key));
    await until(async () => (await left()).length === 0).catch(() => undefined);
    expect(await left()).toEqual([]);
  });
});
