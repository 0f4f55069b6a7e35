import { expect, it } from '@jest/globals';
import { LockLostError, LockTimeoutError, NotLockOwnerError } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import { until } from '../../support/until';
import type { LockFixture } from '../lock-fixture';
import { reliable, SLACK, untilRenewed } from '../timing';

/** Of the types whose leases travel. */
export function travelling(fixture: LockFixture): void {
  it('a detached lease goes on in another process, and nobody has the lock in between', async () => {
    const [one, other, third] = [fixture.registry(), fixture.otherRegistry(), fixture.registry()];
    const lease = await one.obtain('key').lock({ ttl: 5_000 });
    const text = await lease.detach();
    expect(await third.obtain('key').tryLock()).toBeNull();
    expect(await one.obtain('key').tryLock()).toBeNull();
    expect(text.length).toBeLessThanOrEqual(300);
    const adopted = await other.adopt(text);
    expect(adopted.key).toBe('key');
    expect(adopted.remaining).toBeLessThanOrEqual(reliable(5_000));
    expect(adopted.remaining).toBeGreaterThan(reliable(5_000) - SLACK - machineDelay());
    for (const registry of [one, other, third]) expect(await registry.obtain('key').tryLock()).toBeNull();
    const waiting = third.obtain('key').lock();
    await adopted.unlock();
    await (await waiting).unlock();
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('after detach() the lease is over here: no error of unlock(), no loss, and the next local caller finds the lock taken', async () => {
    const registry = fixture.registry();
    const lock = registry.obtain('key');
    const lease = await lock.lock({ ttl: 60_000 });
    const next = lock.lock({ waitTime: 200 });
    const text = await lease.detach();
    await expect(next).rejects.toThrow(LockTimeoutError);
    await lease.unlock();
    await lease[Symbol.asyncDispose]();
    expect(lease.remaining).toBe(0);
    expect(() => lease.assertHeld()).toThrow(NotLockOwnerError);
    await expect(lease.detach()).rejects.toThrow(NotLockOwnerError);
    await expect(lease.renew()).rejects.toThrow(NotLockOwnerError);
    expect(lock.isAcquiredInThisProcess).toBe(false);
    expect(await lock.inspect()).toMatchObject({ held: true, isOurs: false, name: expect.any(String) });
    await (await registry.adopt(text)).unlock();
    expect(lease.signal.aborted).toBe(false);
  });

  it('a text adopts once, also of calls at the same time, in one process and in several', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry()];
    const text = await (await one.obtain('key').lock({ ttl: 60_000 })).detach();
    const calls = await Promise.allSettled([one, one, other, other].map((registry) => registry.adopt(text)));
    const leases = calls.flatMap((call) => (call.status === 'fulfilled' ? [call.value] : []));
    const errors = calls.flatMap((call) => (call.status === 'rejected' ? [call.reason as unknown] : []));
    expect(leases).toHaveLength(1);
    for (const error of errors) {
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ reason: 'stolen', key: 'key' });
    }
    await leases[0]?.unlock();
    await expect(other.adopt(text)).rejects.toMatchObject({ reason: 'expired' });
  });

  it('a lease that nobody adopts in time comes to its end', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry()];
    const text = await (await one.obtain('key').lock({ ttl: 300 })).detach();
    await until(async () => !(await fixture.isInRedis('key')));
    await expect(other.adopt(text)).rejects.toMatchObject({ reason: 'expired', code: 'ERR_LOCK_LOST' });
    await expect(one.adopt(text)).rejects.toMatchObject({ reason: 'expired' });
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('an adopted lease is renewed as it was before, or as the call says', async () => {
    const [one, other] = [fixture.registry({ expireAfter: 400 }), fixture.otherRegistry()];
    const adopted = await other.adopt(await (await one.obtain('key').lock()).detach());
    await untilRenewed(adopted);
    expect(adopted.signal.aborted).toBe(false);
    const fixed = await one.adopt(await adopted.detach(), { renew: false });
    await until(() => fixed.signal.aborted);
    expect(fixed.signal.reason).toMatchObject({ reason: 'expired' });
    await until(async () => !(await fixture.isInRedis('key')));
    const longer = await other.adopt(await (await one.obtain('key').lock({ ttl: 1_000 })).detach(), { ttl: 60_000 });
    expect(longer.remaining).toBeGreaterThan(reliable(60_000) - SLACK - machineDelay());
    await longer.unlock();
  });

  it('the time for the journey is what renew() made of it before', async () => {
    const lease = await fixture.registry().obtain('key').lock({ ttl: 1_000 });
    await lease.renew(60_000);
    const text = await lease.detach();
    expect(await fixture.ttlOf('key')).toBeGreaterThan(60_000 - SLACK - machineDelay());
    const adopted = await fixture.otherRegistry().adopt(text);
    expect(await fixture.ttlOf('key')).toBeLessThanOrEqual(1_000);
    await adopted.unlock();
  });

  it('tokens rise from process to process, with fencing', async () => {
    const [one, other] = [fixture.registry({ fencing: true }), fixture.otherRegistry({ fencing: true })];
    let lease = await one.obtain('key').lock({ ttl: 60_000 });
    const tokens = [lease.fencingToken as number];
    for (const registry of [other, one, other, one]) {
      lease = await registry.adopt(await lease.detach());
      tokens.push(lease.fencingToken as number);
    }
    await lease.unlock();
    await other.run('key', ({ fencingToken }) => tokens.push(fencingToken as number));
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(tokens).toHaveLength(6);
  });

  it('the process that adopted it has it: to inspect(), renewLock(), isAcquiredInThisProcess and close()', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry({ name: 'adopter' })];
    const adopted = await other.adopt(await (await one.obtain('key').lock({ ttl: 5_000 })).detach());
    expect(await one.obtain('key').inspect()).toMatchObject({ isOurs: false, name: 'adopter' });
    expect(await other.obtain('key').inspect()).toMatchObject({ isOurs: true });
    expect(other.obtain('key').isAcquiredInThisProcess).toBe(true);
    expect(one.obtain('key').isAcquiredInThisProcess).toBe(false);
    await other.renewLock('key', 10_000);
    expect(adopted.remaining).toBeGreaterThan(5_000);
    other.expireUnusedOlderThan(-1);
    await other.renewLock('key', 20_000);
    expect(adopted.remaining).toBeGreaterThan(10_000);
    let isClosed = false;
    const closing = other.close().then(() => (isClosed = true));
    await until(() =>
      one
        .obtain('key')
        .inspect()
        .then(({ held }) => held),
    );
    expect(isClosed).toBe(false);
    await adopted.unlock();
    await closing;
    expect(other.obtain('key').isAcquiredInThisProcess).toBe(false);
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('close() ends an adopted lease also where its lock was to be dropped from the cache while it was adopted', async () => {
    const registry = fixture.registry();
    const text = await (await registry.obtain('key').lock()).detach();
    const adopting = registry.adopt(text);
    registry.expireUnusedOlderThan(-1);
    const adopted = await adopting;
    await registry.close({ timeout: 0 });
    expect(adopted.signal.reason).toMatchObject({ reason: 'closed' });
    await expect(adopted.unlock()).rejects.toThrow(LockLostError);
  });

  it('close() leaves a detached lease to those that adopt it, and ends an adopted one that is not unlocked', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry()];
    const text = await (await one.obtain('key').lock({ ttl: 60_000 })).detach();
    await one.close();
    const adopted = await other.adopt(text);
    await other.close({ timeout: 0 });
    expect(adopted.signal.reason).toMatchObject({ reason: 'closed' });
    expect(await fixture.isInRedis('key')).toBe(true);
    await expect(other.adopt(text)).rejects.toMatchObject({ code: 'ERR_REGISTRY_CLOSED' });
  });

  it('callers of the adopting process wait for it, and one that waited before gets the lock after it', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry()];
    const lease = await one.obtain('key').lock({ ttl: 60_000 });
    const waiting = other.obtain('key').lock({ waitTime: 20_000 });
    let hasEntered = false;
    void waiting.then(() => (hasEntered = true));
    expect(await other.obtain('key').tryLock()).toBeNull();
    const adopted = await other.adopt(await lease.detach());
    expect(await other.obtain('key').tryLock({ waitTime: 500 })).toBeNull();
    expect(hasEntered).toBe(false);
    adopted.assertHeld();
    await adopted.unlock();
    await (await waiting).unlock();
  });

  it('a process takes its own lease up again, and detaches it again', async () => {
    const registry = fixture.registry();
    let lease = await registry.obtain('key').lock({ ttl: 60_000 });
    for (let i = 0; i < 5; i++) lease = await registry.adopt(await lease.detach());
    lease.assertHeld();
    await lease.unlock();
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('a run whose task detaches leaves the lock taken, and resolves to what the task returned', async () => {
    const registry = fixture.registry();
    const text = await registry.run('key', (lease) => lease.detach(), { ttl: 60_000 });
    expect(await registry.obtain('key').tryLock()).toBeNull();
    await (await registry.adopt(text)).unlock();
  });

  it('what was left of the minHold is kept in the process that adopted it', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry()];
    const lease = await one.obtain('key').lock({ ttl: 60_000, minHold: 20_000 });
    const adopted = await other.adopt(await lease.detach(), { ttl: 5_000 });
    await adopted.unlock();
    const { remaining, owner } = await one.obtain('key').inspect();
    expect(owner).toMatch(/^kept@/);
    expect(remaining).toBeGreaterThan(20_000 - SLACK - machineDelay());
    expect(remaining).toBeLessThanOrEqual(20_000);
    await one.obtain('key').forceUnlock();
  });

  it('detach() and adopt() report a lease that was lost', async () => {
    const [one, other] = [fixture.registry(), fixture.otherRegistry()];
    const lease = await one.obtain('key').lock({ ttl: 60_000 });
    await fixture.admin.del(fixture.nameOf('key'));
    await expect(lease.detach()).rejects.toMatchObject({ reason: 'expired', code: 'ERR_LOCK_LOST' });
    expect(lease.signal.aborted).toBe(true);
    const text = await (await one.obtain('key').lock({ ttl: 60_000 })).detach();
    await one.obtain('key').forceUnlock();
    const next = await one.obtain('key').lock();
    await expect(other.adopt(text)).rejects.toMatchObject({ reason: 'stolen' });
    next.assertHeld();
    await next.unlock();
  });
}
