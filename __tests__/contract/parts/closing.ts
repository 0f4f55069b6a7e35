import { expect, it } from '@jest/globals';
import { RegistryClosedError } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import { until, WAIT_LIMIT } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { SLACK, untilRenewed } from '../timing';

export function closing(fixture: LockFixture): void {
  it('close() rejects all waiters, in the local queue and in Redis, and all later calls', async () => {
    const registry = fixture.registry();
    const theirs = await fixture.otherRegistry().obtain('theirs').lock();
    const mine = await registry.obtain('mine').lock();
    const refused = Promise.all([
      expect(registry.obtain('theirs').lock()).rejects.toBeInstanceOf(RegistryClosedError),
      expect(registry.obtain('theirs').lock()).rejects.toMatchObject({ key: 'theirs' }),
      expect(registry.obtain('mine').tryLock({ waitTime: 60_000 })).rejects.toMatchObject({
        code: 'ERR_REGISTRY_CLOSED',
      }),
    ]);
    const closed = registry.close();
    await refused;
    await expect(registry.obtain('later').lock()).rejects.toThrow(RegistryClosedError);
    await expect(registry.obtain('later').tryLock()).rejects.toThrow(RegistryClosedError);
    await expect(registry.run('later', () => undefined)).rejects.toThrow(RegistryClosedError);
    await mine.unlock();
    await closed;
    await theirs.unlock();
    expect(await fixture.isInRedis('mine')).toBe(false);
  });

  it('close() waits for the holders, and keeps renewing their leases', async () => {
    const registry = fixture.registry({ expireAfter: 900 });
    const lease = await registry.obtain('key').lock();
    let closed = false;
    const closing = registry.close().then(() => {
      closed = true;
    });
    await untilRenewed(lease);
    lease.assertHeld();
    expect(closed).toBe(false);
    await lease.unlock();
    await closing;
    expect(lease.signal.aborted).toBe(false);
  });

  it('close() stops waiting after its timeout: the signals of the holders abort, and their keys expire (P8)', async () => {
    const registry = fixture.registry({ expireAfter: 800 });
    const lease = await registry.obtain('key').lock();
    const start = performance.now();
    await registry.close({ timeout: 50 });
    expect(performance.now() - start).toBeLessThan(50 + SLACK + machineDelay());
    expect(lease.signal.reason).toMatchObject({ reason: 'closed', key: 'key' });
    expect(lease.remaining).toBe(0);
    // Neither deleted under the running task nor renewed.
    const lives = [await fixture.ttlOf('key'), await fixture.ttlOf('key')];
    for (const life of lives) expect(life).toBeGreaterThan(0);
    await until(async () => !(await fixture.isInRedis('key')), { within: 800 + WAIT_LIMIT });
  });

  it('close() is idempotent, also by `await using`, and does not close the client', async () => {
    const own = fixture.registry();
    await (await own.obtain('key').lock()).unlock();
    await Promise.all([own.close(), own.close()]);
    await own[Symbol.asyncDispose]();
    const next = await fixture.registry().obtain('key').lock();
    await next.unlock();
  });
}
