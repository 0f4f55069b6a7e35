import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, describePrivate } from '../support/private-redis';
import { elapsed } from '../support/test-registry';
import { until } from '../support/until';
import { FaultFixture } from './fault-fixture';

describePrivate.each(CLIENT_KINDS)('%s loses its connection while it releases', (kind) => {
  const fixture = FaultFixture.install(clientKinds[kind], { commandTimeout: 1_000 });

  it('P7: after its execution: a warning and no loss, and a second unlock does nothing', async () => {
    const lease = await fixture.registry.obtain('key').lock();
    const lost = fixture.proxy.loseReply(fixture.nameOf('key'));
    await lease.unlock();
    await lost;
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(0);
    expect(fixture.warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN', key: 'key' }]);
    expect(lease.signal.aborted).toBe(false);
    await fixture.admin.set(fixture.nameOf('key'), 'another');
    await lease.unlock();
    expect(await fixture.admin.get(fixture.nameOf('key'))).toBe('another');
  });

  it('P7: after its execution, with a new owner at once: the new owner keeps the key', async () => {
    const lease = await fixture.registry.obtain('key').lock();
    fixture.proxy.replies.hold = true;
    const unlocking = lease.unlock();
    await until(async () => (await fixture.admin.exists(fixture.nameOf('key'))) === 0);
    await fixture.admin.set(fixture.nameOf('key'), 'another');
    fixture.proxy.reset();
    fixture.proxy.replies.hold = false;
    await unlocking;
    expect(await fixture.admin.get(fixture.nameOf('key'))).toBe('another');
    expect(fixture.warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN' }]);
  });

  it('P7: before its execution: repeated, and released without a warning', async () => {
    const lease = await fixture.registry.obtain('key').lock();
    const lost = fixture.proxy.loseRequest(fixture.nameOf('key'));
    await lease.unlock();
    await lost;
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(0);
    expect(fixture.warnings).toEqual([]);
  });

  it('P7: permanently: settles within its bound, frees the local turn, and the key is deleted when Redis is back', async () => {
    const lock = fixture.registry.obtain('key');
    const lease = await lock.lock();
    fixture.proxy.refuse();
    fixture.proxy.reset();
    const unlocking = lease.unlock();
    const rejected = expect(unlocking).rejects.toMatchObject({ name: 'LockReleaseError', key: 'key' });
    const next = lock.lock({ waitTime: 10_000 });
    expect(await elapsed(unlocking)).toBeLessThan(1_000 + 300 + machineDelay());
    await rejected;
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(1);
    await fixture.proxy.accept();
    // The same process acquires as soon as its late release was executed, or its own owner value is recognised.
    const second = await next;
    await second.unlock();
    await until(async () => (await fixture.admin.exists(fixture.nameOf('key'))) === 0);
  });
});
