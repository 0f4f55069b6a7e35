import { expect, it } from '@jest/globals';
import { CannotAcquireLockError, LockReleaseError } from '../../../lib';
import { HoldableClient } from '../../support/holdable-client';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { createProxiedRegistry } from '../../support/proxied-registry';
import { uniqueKey } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** ms; long enough that no key ends by itself during a test. */
const TTL = 60_000;

describePrivate.each(['pub-sub', 'fair', 'redisson'] as const)('A lease of a %s lock travels, and', (lockType) => {
  const redis = PrivateRedis.install();

  /** Two processes; commands of each can be held back. The server knows the scripts. */
  const start = async () => {
    const options = {
      registryKey: uniqueKey('travel'),
      lockType,
      expireAfter: TTL,
      commandTimeout: 400,
      fencing: true,
    };
    const processes = await Promise.all(
      [1, 2].map(async () => {
        const client = new HoldableClient(await redis.connect());
        return { client, ...createRegistry(client, options) };
      }),
    );
    const [one, other] = processes as [(typeof processes)[0], (typeof processes)[0]];
    for (const { registry } of processes) {
      const lease = await registry.obtain('key').lock();
      await lease.renew();
      await (await registry.adopt(await lease.detach())).unlock();
    }
    const name = one.nameOf('key');
    return { one, other, name, contentOf: () => redis.admin.dump(name), exists: () => redis.admin.exists(name) };
  };

  it('a renewal in flight at detach() finds nothing, before the lease is adopted and after', async () => {
    const { one, other, contentOf, exists } = await start();
    const late = [];
    const lease = await one.registry.obtain('key').lock();
    for (let i = 0; i < 2; i++) {
      const caught = one.client.catchNext('held');
      void lease.renew(2 * TTL).catch(() => undefined);
      late.push(await caught);
    }
    const text = await lease.detach();
    const detached = await contentOf();
    await late[0]?.deliver();
    expect(await contentOf()).toEqual(detached);
    expect(await redis.admin.pTTL(one.nameOf('key'))).toBeLessThanOrEqual(TTL);
    const adopted = await other.registry.adopt(text);
    const before = await contentOf();
    await late[1]?.deliver();
    expect(await contentOf()).toEqual(before);
    expect(lease.signal.aborted).toBe(false);
    await adopted.renew();
    await adopted.unlock();
    expect(await exists()).toBe(0);
  });

  it('an attempt of the lease that is executed after all is over is removed', async () => {
    const { one, other, exists } = await start();
    const caught = one.client.catchNext('cut');
    const locking = one.registry.obtain('key').lock();
    const late = await caught;
    const adopted = await other.registry.adopt(await (await locking).detach());
    adopted.assertHeld();
    await adopted.unlock();
    expect(await exists()).toBe(0);
    await late.deliver();
    expect(await exists()).toBe(1);
    await until(async () => (await exists()) === 0);
  });

  it.each([
    ['executed before it is repeated', true],
    ['executed after it was repeated', false],
  ])('an adoption without an answer adopts when it is repeated by the same registry: %s', async (_, isFirst) => {
    const { one, other, name, contentOf, exists } = await start();
    const lease = await one.registry.obtain('key').lock();
    const text = await lease.detach();
    const caught = other.client.catchNext('held');
    const adopting = other.registry.adopt(text).catch((error: unknown) => error);
    const late = await caught;
    expect(await adopting).toBeInstanceOf(CannotAcquireLockError);
    if (isFirst) {
      await late.deliver();
      await expect(one.registry.adopt(text)).rejects.toMatchObject({ reason: 'stolen' });
    }
    await redis.admin.pExpire(name, TTL / 2);
    const adopted = await other.registry.adopt(text);
    expect(adopted.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    expect(await redis.admin.pTTL(name)).toBeGreaterThan(TTL - 5_000);
    const before = await contentOf();
    await redis.admin.pExpire(name, 2 * TTL);
    if (!isFirst) await late.deliver();
    expect(await redis.admin.pTTL(name)).toBeGreaterThan(TTL);
    expect(await contentOf()).toEqual(before);
    for (const { registry } of [one, other]) {
      await expect(registry.adopt(text)).rejects.toMatchObject({ reason: 'stolen' });
    }
    await adopted.renew();
    await adopted.unlock();
    expect(await exists()).toBe(0);
  });

  it('an adoption that is executed after its lease was given back makes no key', async () => {
    const { one, other, exists } = await start();
    const text = await (await one.registry.obtain('key').lock()).detach();
    const caught = other.client.catchNext('held');
    const adopting = other.registry.adopt(text).catch(() => undefined);
    const late = await caught;
    await adopting;
    await (await other.registry.adopt(text)).unlock();
    await late.deliver();
    expect(await exists()).toBe(0);
  });

  it('a connection that is lost before the answer of detach() is no failure', async () => {
    const { one, exists } = await start();
    const proxied = await createProxiedRegistry(redis, {
      ...{ registryKey: one.registryKey, lockType, expireAfter: TTL, fencing: true },
    });
    const lease = await proxied.registry.obtain('key').lock();
    const lost = proxied.commands.loseReply('detached@');
    const text = await lease.detach();
    await lost;
    const adopted = await one.registry.adopt(text);
    expect(adopted.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await adopted.unlock();
    expect(await exists()).toBe(0);
  });

  it('a lease whose detach() is executed, and not answered, is given back', async () => {
    const { one, exists } = await start();
    const options = { registryKey: one.registryKey, lockType, expireAfter: TTL, fencing: true, commandTimeout: 400 };
    const { registry, commands } = await createProxiedRegistry(redis, options);
    const lease = await registry.obtain('key').lock();
    commands.replies.hold = true;
    const error = await lease.detach().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockReleaseError);
    expect(error).toMatchObject({ message: expect.stringContaining('was not detached, and is given back') });
    expect(await one.registry.obtain('key').inspect()).toMatchObject({ owner: expect.stringMatching(/^detached@/) });
    commands.replies.hold = false;
    await until(async () => (await exists()) === 0);
    await lease.unlock();
  });
});
