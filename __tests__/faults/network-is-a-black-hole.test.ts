import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, describePrivate } from '../support/private-redis';
import { elapsed, lossOf } from '../support/test-registry';
import { until } from '../support/until';
import { FaultFixture } from './fault-fixture';

describePrivate.each(CLIENT_KINDS)('the network of %s is a black hole', (kind) => {
  const fixture = FaultFixture.install(clientKinds[kind], {
    expireAfter: 1_000,
    commandTimeout: 400,
    unavailableAfter: 700,
  });

  it('P1: acquisitions settle by their deadlines: waitTime, commandTimeout, unavailableAfter', async () => {
    fixture.proxy.blackHole = true;
    const acquisitions = {
      lockFor200: fixture.registry.obtain('a').lock({ waitTime: 200 }),
      tryLock: fixture.registry.obtain('b').tryLock(),
      lock: fixture.registry.obtain('c').lock(),
      queued: fixture.registry.obtain('c').lock({ waitTime: 300 }),
    };
    const rejected = Promise.all(
      Object.values(acquisitions).map((acquisition) =>
        expect(acquisition).rejects.toMatchObject({ name: 'CannotAcquireLockError' }),
      ),
    );
    const [lockFor200, tryLock, lock, queued] = await Promise.all(Object.values(acquisitions).map(elapsed));
    await rejected;
    expect(lockFor200).toBeLessThan(200 + 200 + machineDelay());
    expect(tryLock).toBeLessThan(400 + 200 + machineDelay());
    expect(lock).toBeLessThan(700 + 200 + machineDelay());
    expect(lock).toBeGreaterThan(600);
    expect(queued).toBeLessThan(300 + 200 + machineDelay());
  });

  it('P1: an abort settles at once', async () => {
    fixture.proxy.blackHole = true;
    const stop = new AbortController();
    const locking = fixture.registry.obtain('key').lock({ signal: stop.signal });
    const rejected = expect(locking).rejects.toBe('aborted');
    const bytes = fixture.proxy.requests.bytes;
    await until(() => fixture.proxy.requests.bytes > bytes);
    stop.abort('aborted');
    expect(await elapsed(locking)).toBeLessThan(50 + machineDelay());
    await rejected;
  });

  it('P2: an acquisition that was executed is undone when the network is back', async () => {
    fixture.proxy.replies.swallow = true;
    await expect(fixture.registry.obtain('key').lock({ waitTime: 200, ttl: 30_000 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    expect(await fixture.admin.pTTL(fixture.nameOf('key'))).toBeGreaterThan(20_000);
    fixture.proxy.replies.swallow = false;
    fixture.proxy.reset();
    await until(async () => (await fixture.admin.exists(fixture.nameOf('key'))) === 0, { within: 5_000 });
  });

  it('P7: a local caller does not wait for a holder that lost its lease', async () => {
    const lock = fixture.registry.obtain('key');
    const lease = await lock.lock();
    fixture.proxy.blackHole = true;
    await lossOf(lease);
    const bytes = fixture.proxy.requests.bytes;
    const next = lock.lock();
    await until(() => fixture.proxy.requests.bytes > bytes);
    fixture.proxy.blackHole = false;
    fixture.proxy.reset();
    const second = await next;
    expect(second.remaining).toBeGreaterThan(0);
    await second.unlock();
  });
});
