import { expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** Commands of the scripts without which some type cannot lock. */
const COMMANDS = ['time', 'pexpire', 'pttl', 'zadd', 'hset'];

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
      expect(outcome).toMatchObject({
        name: 'CannotAcquireLockError',
        message: expect.stringMatching(/NOPERM|can't run this command/),
      });
    }
    // A counter of fencing tokens may outlive a lock.
    const left = async () => (await redis.admin.keys(`*${registryKey}*`)).filter((key) => !/fence|token/.test(key));
    await until(async () => (await left()).length === 0).catch(() => undefined);
    expect(await left()).toEqual([]);
  });
});
