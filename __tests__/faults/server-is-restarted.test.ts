import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 2_400;

describePrivate.each(CLIENT_KINDS)('the server of %s is killed and started again', (kind) => {
  it('P6 P10: without its data: the next renewal detects the loss, and tokens still rise', async () => {
    const redis = await PrivateRedis.start();
    const { registry } = createRegistry(await clientKinds[kind](redis.address), { expireAfter: TTL, fencing: true });
    const other = createRegistry(await redis.connect(), { fencing: true });
    const startedAt = performance.now();
    const lease = await registry.obtain('key').lock();
    const unlocked = await registry.obtain('unlocked').lock();
    await redis.kill();
    await redis.revive();
    const { reason, at } = await lossOf(lease);
    expect(reason).toBe('expired');
    // Earlier than the deadline: at the first renewal, or at its repetition.
    expect(at - startedAt).toBeLessThan(TTL * (5 / 6) + machineDelay());
    const next = await other.registry.obtain('key').lock();
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await next.unlock();
    const mine = await registry.obtain('key').lock();
    expect(mine.fencingToken).toBeGreaterThan(next.fencingToken as number);
    await mine.unlock();
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
    await expect(unlocked.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
  });

  it('P6 P10: with its data: the lease stays valid, with the same token', async () => {
    const redis = await PrivateRedis.start('--appendonly', 'yes', '--appendfsync', 'always');
    const { registry, nameOf } = createRegistry(await clientKinds[kind](redis.address), {
      expireAfter: TTL,
      fencing: true,
    });
    const lease = await registry.obtain('key').lock();
    await redis.kill();
    await redis.revive();
    const admin = await redis.connect();
    expect(await admin.get(`{${nameOf('key')}}:fence`)).toBe(String(lease.fencingToken));
    await until(() => lease.remaining < (TTL * 2) / 3);
    await until(() => lease.remaining > (TTL * 2) / 3, { within: TTL });
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
    const next = await registry.obtain('key').lock();
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await next.unlock();
  });
});
