import { getEventListeners } from 'node:events';
import { expect, it } from '@jest/globals';
import {
  CannotAcquireLockError,
  type Lease,
  LockLostError,
  LockTimeoutError,
  type RedisLockRegistry,
  RegistryClosedError,
} from '../../lib';
import type { LockType } from '../../lib/kinds';
import { LockFixture } from '../contract/lock-fixture';
import { type ClientKind, redis6Client } from '../support/client-kinds';
import { describeReal } from '../support/redis';
import { until } from '../support/until';

const KEYS = ['a', 'b', 'c'];

/** The behaviour of the lock of several keys, for one lock type through one kind of client. */
export function multiContract(lockType: LockType, kind: ClientKind): void {
  describeReal(`A ${lockType} lock of several keys through ${kind.name}`, () => {
    const fixture = new LockFixture(lockType, kind).installed();

    const heldKeys = async (): Promise<string[]> => {
      const held = await Promise.all(KEYS.map((key) => fixture.isInRedis(key)));
      return KEYS.filter((_key, index) => held[index]);
    };
    /** Redisson's fair lock gives a lock that was given up to the next in its queue. */
    const nothingLeft = () => until(async () => (await heldKeys()).length === 0, { within: 5_000 });
    /** On one server, where messages say that a key is free, a call holds nothing while it waits; else what is before that key. */
    const keepsNone = kind === redis6Client && lockType !== 'redisson-fair';
    const HELD_MEANWHILE = keepsNone ? ['b'] : ['a', 'b'];
    const waitsFor = (registry: RedisLockRegistry, key: string) =>
      until(() => registry.obtain(key).passing.waiting > 0, { within: 5_000 });
    const takenElsewhere = async (...keys: string[]): Promise<Lease[]> => {
      const other = fixture.otherRegistry();
      return Promise.all(keys.map((key) => other.obtain(key).lock()));
    };

    it('A lock of several keys is the lock of each of its keys, each counted once', async () => {
      const [registry, other] = [fixture.registry({ fencing: true }), fixture.otherRegistry()];
      const multi = registry.multi(['c', 'a', 'b', 'a']);
      expect(multi.keys).toEqual(KEYS);
      const lease = await multi.lock();
      expect(await heldKeys()).toEqual(KEYS);
      for (const key of KEYS) expect(await other.obtain(key).tryLock()).toBeNull();
      expect(multi.isAcquiredInThisProcess).toBe(true);
      expect(lease.remaining).toBeGreaterThan(0);
      expect([...lease.fencingTokens.keys()]).toEqual(KEYS);
      for (const token of lease.fencingTokens.values()) expect(token).toBeGreaterThan(0);
      await lease.unlock();
      expect(await heldKeys()).toEqual([]);
      expect(lease.remaining).toBe(0);
      expect(() => lease.assertHeld()).toThrow(/not held by this lease/);
    });

    it('tryLock gives null when one key is held, and has left nothing then', async () => {
      const [taken] = await takenElsewhere('b');
      expect(await fixture.registry().multi(KEYS).tryLock()).toBeNull();
      expect(await heldKeys()).toEqual(['b']);
      await taken?.unlock();
      const lease = await fixture.registry().multi(KEYS).tryLock();
      expect(lease).not.toBeNull();
      await lease?.unlock();
    });

    it('A lock of several keys waits for one key without the others, or with those before it where they are on several servers', async () => {
      const [taken] = await takenElsewhere('b');
      const registry = fixture.registry();
      // Every process takes them in one order, however they are named: no two wait for each other in a circle.
      const waiting = registry.multi(KEYS.toReversed()).lock();
      await waitsFor(registry, 'b');
      await until(async () => String(await heldKeys()) === String(HELD_MEANWHILE), { within: 5_000 });
      for (const key of KEYS.filter((one) => !HELD_MEANWHILE.includes(one))) {
        await (await fixture.otherRegistry().obtain(key).lock({ waitTime: 5_000 })).unlock();
      }
      await taken?.unlock();
      const lease = await waiting;
      expect(await heldKeys()).toEqual(KEYS);
      await lease.unlock();
      await nothingLeft();
    });

    it('A lock of several keys gives up at the end of its waitTime, names the key that was held, and leaves nothing', async () => {
      const [taken] = await takenElsewhere('c');
      const waiting = fixture.registry().multi(KEYS).lock({ waitTime: 300 });
      await expect(waiting).rejects.toThrow(LockTimeoutError);
      await expect(waiting).rejects.toMatchObject({ key: 'c', waitTime: 300 });
      expect(await fixture.registry().multi(KEYS).tryLock({ waitTime: 300 })).toBeNull();
      await until(async () => String(await heldKeys()) === 'c', { within: 5_000 });
      await taken?.unlock();
    });

    it.each([
      ['aborted', (abort: AbortController) => abort.abort(new Error('enough')), /enough/],
      ['its registry is closed', (_abort: AbortController, close: () => void) => close(), RegistryClosedError],
    ] as const)('A lock of several keys leaves nothing when it is %s during its wait', async (_what, end, error) => {
      const [taken] = await takenElsewhere('b');
      const registry = fixture.registry();
      const abort = new AbortController();
      const waiting = registry.multi(KEYS).lock({ signal: abort.signal });
      await waitsFor(registry, 'b');
      end(abort, () => void registry.close({ timeout: 0 }));
      await expect(waiting).rejects.toThrow(error);
      await until(async () => String(await heldKeys()) === 'b', { within: 5_000 });
      await taken?.unlock();
    });

    it('Callers of a lock of several keys that share a signal add one listener to it, and leave none (P8)', async () => {
      const registry = fixture.registry();
      const { signal } = new AbortController();
      const callers = Array.from({ length: 12 }, async (_, i) => {
        const lease = await registry.multi([`a${i}`, 'b', `c${i}`]).lock({ signal, waitTime: 60_000 });
        expect(getEventListeners(signal, 'abort').length).toBeLessThanOrEqual(1);
        await lease.unlock();
      });
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      await Promise.all(callers);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    });

    it('minHold holds for all of them from the grant on, though the process ends then', async () => {
      const [taken] = await takenElsewhere('b');
      const minHold = 1_500;
      const registry = fixture.registry({ expireAfter: minHold });
      const waiting = registry.multi(KEYS).lock({ minHold });
      await waitsFor(registry, 'b');
      const freed = performance.now();
      await taken?.unlock();
      const lease = await waiting;
      const lives = await Promise.all(KEYS.map((key) => fixture.ttlOf(key)));
      for (const life of lives) expect(life + performance.now() - freed).toBeGreaterThanOrEqual(minHold);
      for (const key of KEYS) await fixture.registry().obtain(key).forceUnlock();
      await expect(lease.unlock()).rejects.toThrow();
    });

    it('A lock of several keys is lost when one of its keys is lost, and gives the others back', async () => {
      const lease = await fixture.registry({ expireAfter: 600 }).multi(KEYS).lock();
      const { signal } = lease;
      await fixture.admin.del(fixture.nameOf('b'));
      await until(() => signal.aborted, { within: 5_000 });
      expect(signal.reason).toBeInstanceOf(LockLostError);
      expect(signal.reason).toMatchObject({ key: 'b', reason: 'expired' });
      expect(lease.remaining).toBe(0);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      await expect(lease.unlock()).rejects.toMatchObject({ key: 'b' });
      await nothingLeft();
    });

    it('A renewal of several keys that finds a loss rejects with it, also where a listener to it unlocks them', async () => {
      const lease = await fixture.registry().multi(KEYS).lock();
      lease.signal.addEventListener('abort', () => void lease.unlock().catch(() => undefined));
      await fixture.admin.del(fixture.nameOf('b'));
      await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError', key: 'b' });
      await nothingLeft();
    });

    it('A lock of several keys fails when Redis refuses one of the keys, and leaves nothing', async () => {
      // A string where a hash is expected, or the other way round.
      const otherFormat = lockType.startsWith('redisson') ? 'spin' : 'redisson';
      const taken = await fixture.otherRegistry({ lockType: otherFormat }).obtain('b').lock();
      const acquiring = fixture.registry().multi(KEYS).lock({ waitTime: 5_000 });
      await expect(acquiring).rejects.toThrow(CannotAcquireLockError);
      await expect(acquiring).rejects.toMatchObject({
        key: 'b',
        cause: { message: expect.stringMatching(/WRONGTYPE/) },
      });
      await until(async () => String(await heldKeys()) === 'b', { within: 5_000 });
      await taken.unlock();
    });
  });
}
