import { expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate } from '../support/private-redis';
import { elapsed } from '../support/test-registry';
import { until } from '../support/until';
import { FaultFixture } from './fault-fixture';

describePrivate.each(CLIENT_KINDS)('%s loses its connection while it releases', (kind) => {
  const fixture = FaultFixture.install(clientKinds[kind], { commandTimeout: 1_000 });

  it('P7: after the server ran it: a warning and not a loss, and a second unlock does nothing', async () => {
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

  it('P7: after the server ran it, and another owner came at once: the key stays theirs', async () => {
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

  it('P7: before the server read it: repeated, and released without a trace', async () => {
    const lease = await fixture.registry.obtain('key').lock();
    const lost = fixture.proxy.loseRequest(fixture.nameOf('key'));
    await lease.unlock();
    await lost;
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(0);
    expect(fixture.warnings).toEqual([]);
  });

  it('P7: for good: settles within its bound, the local turn is free, and the key goes when Redis is back', async () => {
    const lock = fixture.registry.obtain('key');
    const lease = await lock.lock();
    fixture.proxy.refuse();
    fixture.proxy.reset();
    const unlocking = lease.unlock();
    const rejected = expect(unlocking).rejects.toMatchObject({ name: 'LockReleaseError', key: 'key' });
    const next = lock.lock({ waitTime: 10_000 });
    expect(await elapsed(unlocking)).toBeLessThan(1_000 + 300);
    await rejected;
    expect(await fixture.admin.exists(fixture.nameOf('key'))).toBe(1);
    await fixture.proxy.accept();
    // The same process enters as soon as its own late release, or its own owner value, lets it.
    const second = await next;
    await second.unlock();
    await until(async () => (await fixture.admin.exists(fixture.nameOf('key'))) === 0);
  });
});
