import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type LockWarning, RedisLockRegistry } from '../../lib';
import { type RedisServer, startRedis } from '../../support/redis';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { callsOf } from '../support/server-load';

async function userWith(admin: TestClient, server: RedisServer | undefined, ...rules: string[]): Promise<TestClient> {
  const username = uniqueKey('user').replaceAll(':', '-');
  await admin.sendCommand(['ACL', 'SETUSER', username, 'on', '>secret', '~*', ...rules]);
  return createRealClient({ username, password: 'secret', ...(server && { socket: server.address }) });
}

describeReal('A spin lock on a server', () => {
  describe('without UNLINK', () => {
    let server: RedisServer;
    let client: TestClient;

    beforeAll(async () => {
      server = await startRedis({ args: ['--rename-command', 'UNLINK', ''] });
      client = await createRealClient({ socket: server.address });
    });

    afterAll(async () => {
      client.destroy();
      await server.stop();
    });

    it('deletes with DEL', async () => {
      const registry = new RedisLockRegistry(client, { registryKey: uniqueKey() });
      for (let i = 1; i <= 3; i++) {
        await registry.run('key', () => undefined);
        expect(await client.dbSize()).toBe(0);
        expect(await callsOf(client, 'del')).toBe(i);
      }
      await registry.close();
    });
  });

  describe('whose user', () => {
    let server: RedisServer;
    let admin: TestClient;

    beforeAll(async () => {
      server = await startRedis();
      admin = await createRealClient({ socket: server.address });
    });

    afterAll(async () => {
      admin.destroy();
      await server.stop();
    });

    it('may not UNLINK: it deletes with DEL, and does not try UNLINK again', async () => {
      const client = await userWith(admin, server, '&*', '+@all', '-unlink');
      const registry = new RedisLockRegistry(client, { registryKey: uniqueKey() });
      await registry.run('key', () => undefined);
      expect(await admin.dbSize()).toBe(0);
      // The right is granted now, but the registry remembers that it was missing.
      await admin.sendCommand(['ACL', 'SETUSER', String(await client.sendCommand(['ACL', 'WHOAMI'])), '+unlink']);
      const before = await callsOf(admin, 'unlink');
      await registry.run('key', () => undefined);
      expect(await callsOf(admin, 'unlink')).toBe(before);
      expect(await admin.dbSize()).toBe(0);
      await registry.close();
      client.destroy();
    });

    it('may UNLINK: it deletes with UNLINK', async () => {
      const before = await callsOf(admin, 'unlink');
      const registry = new RedisLockRegistry(admin, { registryKey: uniqueKey() });
      await registry.run('key', () => undefined);
      expect(await callsOf(admin, 'unlink')).toBe(before + 1);
      await registry.close();
    });

    it('has no rights on channels: it can release, with one warning', async () => {
      const client = await userWith(admin, server, 'resetchannels', '+@all');
      const warnings: LockWarning[] = [];
      const registry = new RedisLockRegistry(client, {
        registryKey: uniqueKey(),
        onWarning: (warning) => void warnings.push(warning),
      });
      await expect(client.publish('channel', 'message')).rejects.toThrow('NOPERM');
      for (let round = 0; round < 2; round++) {
        const lease = await registry.obtain('key').lock();
        await lease.renew();
        await lease.unlock();
        expect(await admin.dbSize()).toBe(0);
      }
      // Waiters of other lock types may listen on the channel.
      expect(warnings).toMatchObject([{ code: 'NOTIFICATION_REFUSED' }]);
      await registry.close();
      client.destroy();
    });
  });
});
