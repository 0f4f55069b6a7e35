import { beforeEach, expect, it } from '@jest/globals';
import { DISTINCT_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { untilQuiet } from '../support/server-load';
import { createRegistry, elapsed, lossOf, rejection } from '../support/test-registry';
import { until } from '../support/until';

const EVERYTHING = ['+@all', '~*', '&*'];

describePrivate('the server answers with a permanent error', () => {
  const redis = PrivateRedis.install();

  beforeEach(async () => {
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'default', 'on', 'nopass', ...EVERYTHING]);
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', 'reset', 'on', '>secret', ...EVERYTHING]);
  });

  const connect = () => redis.connect({ username: 'locks', password: 'secret' });

  async function expectAtOnce(client: TestClient, code: string): Promise<void> {
    const { registry } = createRegistry(client);
    const refused = {
      name: 'CannotAcquireLockError',
      message: expect.stringContaining(`could not be acquired: ${code}`),
      cause: { message: expect.stringMatching(new RegExp(`^${code}`)) },
    };
    for (const acquire of [() => registry.obtain('key').lock(), () => registry.obtain('key').tryLock()]) {
      expect(await rejection(acquire(), refused)).toBeLessThan(500 + machineDelay());
    }
  }

  it('NOPERM on the key: rejects at once', async () => {
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', 'resetkeys', '~elsewhere:*']);
    await expectAtOnce(await connect(), 'NOPERM');
  });

  it('NOPERM for calls of one tick that do not wait: each of them says so', async () => {
    const { registry } = createRegistry(await connect());
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', '-@scripting']);
    const calls = Array.from({ length: 4 }, () => registry.obtain('key').tryLock());
    const refused = { name: 'CannotAcquireLockError', message: expect.stringContaining('NOPERM') };
    await Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(refused)));
  });

  it('NOAUTH: rejects at once', async () => {
    const client = await redis.connect();
    // Connected but not authenticated, on a server that requires it from now on.
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'default', 'resetpass', '>other']);
    await client.sendCommand(['RESET']);
    await expectAtOnce(client, 'NOAUTH');
  });

  it('NOAUTH, as a server says it to a long command: it rejects at once', async () => {
    const client = await redis.connect();
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'default', 'resetpass', '>other']);
    await client.sendCommand(['RESET']);
    const call = createRegistry(client).registry.semaphore('key', { permits: 1 }).tryLock();
    await expect(call).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      message: expect.stringContaining('(the client has no password, or a wrong one)'),
    });
  });

  it('An unknown command rejects at once', async () => {
    const old = await PrivateRedis.start('--rename-command', 'EVALSHA', '');
    await expectAtOnce(await old.connect(), 'ERR unknown command');
  });

  it.each(DISTINCT_TYPES)('NOPERM for a waiter of a %s lock: it rejects soon', async (lockType) => {
    const { registry, registryKey } = createRegistry(await connect(), { lockType, idleBetweenTries: 100 });
    const holder = createRegistry(redis.admin, { lockType, registryKey });
    const lease = await holder.registry.obtain('key').lock({ ttl: 60_000 });
    const waiting = registry.obtain('key').lock();
    const rejected = expect(waiting).rejects.toMatchObject({ message: expect.stringContaining('NOPERM') });
    await untilQuiet(redis.admin);
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', '-@scripting']);
    // It asks once a second.
    expect(await elapsed(waiting)).toBeLessThan(3_000 + machineDelay());
    await rejected;
    await lease.unlock();
  });

  it('P8: WRONGPASS after a reconnect: settles by its deadline, without an unhandled error', async () => {
    const client = await connect();
    const { registry } = createRegistry(client, { expireAfter: 600, commandTimeout: 300, unavailableAfter: 400 });
    const lease = await registry.obtain('key').lock();
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', 'resetpass', '>changed']);
    // node-redis sends queued commands right after the AUTH that fails: they must not run as the default user.
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'default', 'off']);
    await redis.admin.sendCommand(['CLIENT', 'KILL', 'USER', 'locks']);
    const locking = registry.obtain('free').lock();
    expect(await rejection(locking, { name: 'CannotAcquireLockError' })).toBeLessThan(400 + 200 + machineDelay());
    expect((await lossOf(lease)).reason).toBe('unconfirmed');
  });

  it('P4 P6 P7: NOPERM for a holder: unconfirmed at the deadline, and its unlock rejects at once', async () => {
    const { registry, nameOf } = createRegistry(await connect(), { expireAfter: 800 });
    const lease = await registry.obtain('key').lock();
    const given = await registry.obtain('given').lock();
    await redis.admin.sendCommand(['ACL', 'SETUSER', 'locks', '-@scripting']);
    const refused = { name: 'LockReleaseError', cause: { message: expect.stringMatching(/^NOPERM/) } };
    expect(await rejection(given.unlock(), refused)).toBeLessThan(200 + machineDelay());
    expect((await lossOf(lease)).reason).toBe('unconfirmed');
    await until(async () => (await redis.admin.exists([nameOf('key'), nameOf('given')])) === 0);
  });
});
