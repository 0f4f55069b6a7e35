import { expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { CLIENT_KINDS, clientKinds, describePrivate, repeatsByItself } from '../support/private-redis';
import { lossOf } from '../support/test-registry';
import { until } from '../support/until';
import { FaultFixture } from './fault-fixture';

const TTL = 1_000;

describePrivate.each(CLIENT_KINDS)('%s loses its connection while it renews', (kind) => {
  const fixture = FaultFixture.install(clientKinds[kind], { expireAfter: TTL, fencing: true });

  it.each(['loseReply', 'loseRequest'] as const)('P6: %s: repeated until it succeeds, without a loss', async (lose) => {
    const lease = await fixture.registry.obtain('key').lock();
    await fixture.proxy[lose](fixture.nameOf('key'));
    const before = lease.remaining;
    await until(() => lease.remaining > before);
    expect(lease.signal.aborted).toBe(false);
    expect(await fixture.admin.pTTL(fixture.nameOf('key'))).toBeGreaterThan(lease.remaining - 5);
    await lease.unlock();
    expect(fixture.warnings).toEqual([]);
  });

  it('P4 P6: every time: lost as unconfirmed at the deadline, and not before', async () => {
    const startedAt = performance.now();
    const lease = await fixture.registry.obtain('key').lock();
    const loss = lossOf(lease);
    let over = false;
    const cutting = (async () => {
      while (!over) await Promise.race([fixture.proxy.loseRequest(fixture.nameOf('key')), loss]);
    })();
    const { reason, at } = await loss;
    over = true;
    await cutting;
    expect(reason).toBe('unconfirmed');
    expect(at - startedAt).toBeGreaterThan(TTL - 10);
    expect(at - startedAt).toBeLessThan(TTL + 200 + machineDelay());
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'unconfirmed' });
  });

  if (!repeatsByItself(kind)) {
    it('P6: an explicit renewal rejects, and does not change `remaining`', async () => {
      const lease = await fixture.registry.obtain('key').lock({ ttl: 10_000 });
      const lost = fixture.proxy.loseReply(fixture.nameOf('key'));
      await expect(lease.renew(20_000)).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
      await lost;
      expect(lease.remaining).toBeLessThan(10_000);
      expect(lease.remaining).toBeGreaterThan(5_000);
      await lease.renew(20_000);
      expect(lease.remaining).toBeGreaterThan(15_000);
      await lease.unlock();
    });
  }
});
