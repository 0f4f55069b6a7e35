import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { callsOf } from '../support/server-load';
import { createRegistry } from '../support/test-registry';

describePrivate('A spin lock of a user', () => {
  const redis = PrivateRedis.install();

  const clientWith = async (username: string, ...rules: string[]) => {
    await redis.admin.sendCommand(['ACL', 'SETUSER', username, 'on', '>secret', '~*', ...rules]);
    return redis.connect({ username, password: 'secret' });
  };

  it('who may not UNLINK is deleted with DEL, and UNLINK is not tried again', async () => {
    const { registry } = createRegistry(await clientWith('no-unlink', '&*', '+@all', '-unlink'));
    await registry.run('key', () => undefined);
    expect(await redis.admin.dbSize()).toBe(0);
    // The right is granted now, but the registry remembers that it was missing.
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'no-unlink', '+unlink']);
    const before = await callsOf(redis.admin, 'unlink');
    await registry.run('key', () => undefined);
    expect(await callsOf(redis.admin, 'unlink')).toBe(before);
    expect(await redis.admin.dbSize()).toBe(0);
  });

  it('who may UNLINK is deleted with UNLINK', async () => {
    const before = await callsOf(redis.admin, 'unlink');
    await createRegistry(redis.admin).registry.run('key', () => undefined);
    expect(await callsOf(redis.admin, 'unlink')).toBe(before + 1);
  });

  it('without rights on channels can be released, with one warning', async () => {
    const client = await clientWith('no-channels', 'resetchannels', '+@all');
    const { registry, warnings } = createRegistry(client);
    await expect(client.publish('channel', 'message')).rejects.toThrow('NOPERM');
    for (let round = 0; round < 2; round++) {
      const lease = await registry.obtain('key').lock();
      await lease.renew();
      await lease.unlock();
      expect(await redis.admin.dbSize()).toBe(0);
    }
    // Waiters of other lock types may listen on the channel.
    expect(warnings).toMatchObject([{ code: 'NOTIFICATION_REFUSED' }]);
  });
});
