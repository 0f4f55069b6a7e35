import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, describePrivate } from '../support/private-redis';
import { elapsed } from '../support/test-registry';
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
});
