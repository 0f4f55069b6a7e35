import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { beforeEach, expect, it, jest } from '@jest/globals';
import {
  type AcquireMessage,
  type HoldMessage,
  type Lease,
  NotLockOwnerError,
  type RedisClient,
  type RedisLock,
  RedisLockRegistry,
} from '../../lib';
import type { InternalLease } from '../../lib/core/internal-lease';
import { Scope } from '../../lib/core/scope';
import { collectGarbage, untilCollected } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, nextReply, renewed, silence } from '../support/mock-redis';
import { published } from '../support/published';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;
let lock: RedisLock;
let other: RedisLock;

beforeEach(() => {
  redis = mockRedis();
  registry = createRegistry(redis).registry;
  [lock, other] = [registry.obtain('key'), registry.obtain('other')];
});

/** A promise that the test resolves. */
function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

/** The lock is lost to another process, and its lease learns that. */
async function lose(lease: Lease): Promise<void> {
  redis.evalSha.mockResolvedValueOnce(-1);
  await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
}

const LOST = { name: 'LockLostError', reason: 'stolen' };

it('A call inside a run knows which locks are around it, for a warning of a deadlock', async () => {
  const begin = jest.spyOn(lock.services.waits, 'begin');
  await other.run(async () => {
    await lock.run(() => undefined);
    const around = begin.mock.lastCall?.[0].scope;
    expect([other, lock].map(({ names }) => around?.isInside(names.lock))).toEqual([true, false]);
  });
});

it('Nested calls whose scope ends before their turn, and those that had it, are no open waits any more', async () => {
  const { waits } = lock.services;
  /** The waits in the list of nested ones, and whether one that has joined the others was in it. */
  const nested = new Set<unknown>();
  const seen: boolean[] = [];
  for (const [method, note] of [
    ['beginReentry', (wait: unknown) => nested.add(wait)],
    ['endReentry', (wait: unknown) => nested.delete(wait)],
    ['begin', (wait: unknown) => seen.push(nested.has(wait))],
  ] as const) {
    const call = waits[method].bind(waits);
    jest.spyOn(waits, method).mockImplementation((wait) => {
      note(wait);
      call(wait);
    });
  }
  const calls: Promise<unknown>[] = [];
  await lock.run(async () => {
    await lock.lock();
    for (const _ of [1, 2, 3]) calls.push(lock.run(() => undefined));
  });
  await Promise.all(calls);
  expect([nested.size, seen]).toEqual([0, [false, false, false, false]]);
});

it('A nested lease shows what the outer one has, sends nothing, and is of no use after its unlock', async () => {
  redis.evalSha.mockResolvedValueOnce('7');
  const fenced = createRegistry(redis, { fencing: true }).registry.obtain('key');
  await fenced.run(async (lease) => {
    const { sent } = redis;
    const [outer, nested] = [lease as InternalLease, (await fenced.lock()) as InternalLease];
    const shown = ({ key, owner, permits, signal, remaining, fencingToken }: InternalLease) => {
      return { key, owner, permits, signal, remaining, fencingToken };
    };
    expect(shown(nested)).toEqual(shown(outer));
    expect(nested.fencingToken).toBe(7);
    expect(inspect(nested)).toMatch(/^Lease \{ key: 'key'.*, reentrant: true \}$/);
    await expect(nested.detach()).rejects.toThrow(
      'The lease of a nested call cannot travel to another process: detach that of the outermost one',
    );
    nested.assertHeld();
    expect(nested.checkLost()).toBe(false);
    await nested.unlock();
    await nested.unlock();
    expect([nested.remaining, nested.isUnlocked, redis.sent]).toEqual([0, true, sent]);
    expect(() => nested.assertHeld()).toThrow('was unlocked');
    await expect(nested.renew()).rejects.toThrow('was unlocked');
    await expect(nested.eval('return 1')).rejects.toThrow('was unlocked');
    expect(redis.sent).toBe(sent);
    lease.assertHeld();
  });
});

it('renew() of a nested lease that is unlocked before the answer rejects', async () => {
  await lock.run(async () => {
    const lease = await lock.lock();
    const reply = nextReply(redis);
    const renewing = lease.renew();
    await lease.unlock();
    reply.resolve(renewed);
    await expect(renewing).rejects.toThrow(NotLockOwnerError);
  });
});

it('A nested lease runs a script under the lock', async () => {
  await lock.run(async () => {
    const nested = await lock.lock();
    redis.evalSha.mockResolvedValueOnce('reply');
    expect(await nested.eval('return 1')).toBe('reply');
  });
});

it('A nested call takes as many permits as its scope has, on each level, and no more', async () => {
  redis.evalSha.mockResolvedValue([1, 0, 3]);
  const semaphore = registry.semaphore('key', { permits: 3 });
  const inside = () => semaphore.run(() => semaphore.lock({ permits: 2 }), { permits: 2 });
  await semaphore.run(inside, { permits: 2 });
  await expect(semaphore.run(() => semaphore.lock({ permits: 3 }), { permits: 2 })).rejects.toThrow(
    'Lock "key" could not be acquired with 3 permits inside its own scope, which has 2: a nested call takes no ' +
      'further permits. Take 3 with the outermost call',
  );
});

it('Each of several keys of a run is entered again inside, on each level', async () => {
  await registry.multi(['other', 'key']).run(async () => {
    const { sent } = redis;
    for (const one of [lock, other]) await one.run(() => one.run(() => undefined));
    expect(redis.sent).toBe(sent);
  });
});

it('A call for several keys inside a run is published as a re-entry where all of them are held around it', async () => {
  const nested = (keys: string[]) => registry.multi(keys).run(() => undefined);
  const messages = await published<AcquireMessage>('acquire', () =>
    registry.multi(['a', 'b']).run(() => nested(['a', 'b']).then(() => nested(['a', 'c']))),
  );
  expect(messages.map(({ isReentry }) => isReentry)).toEqual([false, true, false]);
});

it('A nested call of a thenable, which begins its work when the run waits for it, enters again', async () => {
  const nested = async () => (await lock.tryRun(() => undefined)).ran;
  // biome-ignore lint/suspicious/noThenProperty: what the test is about
  const lazy: PromiseLike<boolean> = { then: (...settle) => nested().then(...settle) };
  expect(await lock.run(() => lazy)).toBe(true);
});

it('A call inside a nested run is a new acquisition after an early unlock of the outer lease', async () => {
  await lock.run((lease) =>
    lock.run(async () => {
      await lease.unlock();
      expect(Scope.current()?.isInside(lock.names.lock)).toBe(false);
      await lock.run(({ signal }) => expect(signal).not.toBe(lease.signal));
    }),
  );
});

it('A scope is within itself and those of its lock around it', async () => {
  await lock.run(async () => {
    const outer = Scope.current() as Scope;
    await other.run(() =>
      lock.run(() => {
        const inner = Scope.current() as Scope;
        const isWithin = (scope: Scope, ...some: Scope[]) => scope.isWithin(new Set(some));
        expect([isWithin(inner, inner), isWithin(inner, outer)]).toEqual([true, true]);
        expect([isWithin(outer, inner), isWithin(inner)]).toEqual([false, false]);
      }),
    );
    await other.run(() => expect(Scope.current()?.isWithin(new Set([outer]))).toBe(false));
  });
});

it('A scope knows whether it is inside that of a lock of this name', async () => {
  const [lease, inner] = [{ isUnlocked: false }, { isUnlocked: false }];
  await new Scope({ names: { lock: 'a' } }, lease as InternalLease).run(() =>
    new Scope({}, inner as InternalLease).run(() => {
      const isInside = (name: string) => Scope.current()?.isInside(name);
      expect([isInside('a'), isInside('b')]).toEqual([true, false]);
      lease.isUnlocked = true;
      expect(isInside('a')).toBe(false);
    }),
  );
});

it('Callers that wait inside a scope whose lease is lost are told so, one after the other, and nested leases once', async () => {
  const running = lock.run(async (lease) => {
    const first = await lock.lock();
    const waiting = [1, 2].map(() => expect(lock.lock()).rejects.toMatchObject(LOST));
    await lose(lease);
    await expect(first.unlock()).rejects.toMatchObject(LOST);
    await first.unlock();
    await Promise.all(waiting);
    return 'done';
  });
  await expect(running).rejects.toMatchObject({ ...LOST, result: 'done' });
});

it('Each run that was inside when the lease was lost rejects with the result of its own task', async () => {
  const outer = lock.run(async (lease) => {
    const inner = lock.run(() => lose(lease).then(() => 'inner'));
    await expect(inner).rejects.toMatchObject({ ...LOST, result: 'inner' });
    return 'outer';
  });
  await expect(outer).rejects.toMatchObject({ ...LOST, result: 'outer' });
});

it('A nested call with a ttl or a minHold that is longer than what is left extends the lease', async () => {
  const run = (task: (lease: Lease) => unknown) => lock.run(task, { ttl: 60_000 });
  await run(async (lease) => {
    await time.advance(40_000);
    await (await lock.lock({ ttl: 10_000 })).unlock();
    expect(lease.remaining).toBeLessThan(20_000);
    await (await lock.lock({ ttl: 40_000 })).unlock();
    expect(lease.remaining).toBeGreaterThan(39_000);
    await (await lock.lock({ minHold: 50_000 })).unlock();
    expect(lease.remaining).toBeGreaterThan(49_000);
  });
  // The release keeps it until the minHold ends.
  expect(redis.calls.at(-1)?.arguments).toContain('50000');
});

it('renew() of a nested lease is for the ttl of its call, on each level, and without one for that of the outer lease', async () => {
  await lock.run(
    async (lease) => {
      await lock.run(
        () =>
          lock.run(async (nested) => {
            await time.advance(50_000);
            await nested.renew();
            expect(lease.remaining).toBeGreaterThan(59_000);
          }),
        { ttl: 60_000 },
      );
      await time.advance(59_500);
      await lock.run((nested) => nested.renew());
      expect(lease.remaining).toBe(998);
    },
    { ttl: 1_000 },
  );
});

it('A nested call waits for the extension of the lease no longer than it may, and 50 ms in any case', async () => {
  const ends: unknown[] = [];
  await lock.run(
    async () => {
      redis.evalSha.mockImplementation(silence);
      for (const waitTime of [500, 1]) ends.push(await time.settled(lock.lock({ ttl: 100_000, waitTime })));
      redis.evalSha.mockResolvedValue(1);
    },
    { ttl: 60_000 },
  );
  const error = { name: 'CannotAcquireLockError' };
  expect(ends).toMatchObject([500, 50].map((after) => ({ after, error })));
});

it('A nested call whose scope ends while it extends the lease acquires the lock itself', async () => {
  const reply = lateReply();
  await lock.run(
    async (lease) => {
      redis.evalSha.mockReturnValueOnce(reply.promise);
      const nested = lock.lock({ ttl: 100_000 });
      await time.advance(1);
      await lease.unlock();
      reply.resolve(1);
      const { sent } = redis;
      (await nested).assertHeld();
      expect(redis.sent).toBe(sent + 1);
      await (await nested).unlock();
    },
    { ttl: 60_000 },
  );
});

it('A nested call with a minHold that is shorter than any ttl extends a lease with less left', async () => {
  await lock.run(
    async (lease) => {
      await time.advance(27);
      await lock.lock({ minHold: 3 });
      expect(lease.remaining).toBe(3);
    },
    { ttl: 30 },
  );
});

it('A nested call whose scope ends while it extends the lease has the next holder keep no minHold', async () => {
  const reply = lateReply();
  let nested: Promise<Lease> | undefined;
  const running = lock.run(() => {
    redis.evalSha.mockReturnValueOnce(reply.promise);
    nested = lock.lock({ ttl: 100_000, minHold: 50_000 });
  });
  const next = lock.lock();
  await running;
  const lease = await next;
  reply.resolve(1);
  await time.advance(1);
  const { sent } = redis;
  await lease.unlock();
  // One command confirms the hold for the nested call.
  (await nested)?.assertHeld();
  expect(redis.sent).toBe(sent + 1);
});

it('A lock is not evicted while a nested call enters it, though its scope is over', async () => {
  const reply = lateReply();
  let nested: Promise<Lease> | undefined;
  await lock.run(() => {
    redis.evalSha.mockReturnValueOnce(reply.promise);
    nested = lock.lock({ ttl: 100_000 });
  });
  registry.expireUnusedOlderThan(-1);
  expect(registry.obtain('key')).toBe(lock);
  reply.resolve(1);
  (await nested)?.assertHeld();
  await lock.unlock();
  expect(lock.isInUse).toBe(false);
});

it.each(['run', 'tryRun'] as const)('A run waits for a nested %s() that its task did not wait for', async (how) => {
  const { open, opened } = gate();
  let nested: Promise<unknown> | undefined;
  let isOver = false;
  const running = lock
    .run(() => {
      nested = lock[how](() => opened);
      return 'result';
    })
    .then(() => (isOver = true));
  await time.advance(1);
  expect(isOver).toBe(false);
  open();
  await Promise.all([nested, running]);
  expect(await lock.run(() => lock.lock().then(() => 'left'))).toBe('left');
});

it('unlock() of a lock inside a scope ends what the scope took, one after the other, and not the run', async () => {
  await lock.run(async (lease) => {
    await expect(lock.unlock()).rejects.toMatchObject({ name: 'NotLockOwnerError' });
    await lock.lock();
    await lock.unlock();
    await expect(lock.unlock()).rejects.toMatchObject({ name: 'NotLockOwnerError' });
    lease.assertHeld();
    redis.evalSha.mockResolvedValue([1, 0, 2]);
    const semaphore = registry.semaphore('key', { permits: 2 });
    await semaphore.lock();
    await semaphore.lock();
    await expect(semaphore.unlock()).rejects.toThrow('has several leases here');
    redis.evalSha.mockResolvedValue(1);
  });
});

it('unlock() of a lock in work that outlived its scopes ends what was taken in them', async () => {
  const [first, second] = [gate(), gate()];
  let work: Promise<unknown> = Promise.resolve();
  await lock.run(async () => {
    const lease = await other.lock();
    const unlocked = registry.obtain('unlocked');
    await unlocked.lock();
    await unlocked.unlock();
    work = (async () => {
      await first.opened;
      // Another round, inside the scope that is over.
      await registry.run('third', async () => {
        await registry.obtain('fourth').lock();
        await registry.obtain('fourth').unlock();
        work = (async () => {
          await second.opened;
          await other.unlock();
          expect(lease.remaining).toBe(0);
        })();
      });
    })();
  });
  const round = work;
  first.open();
  await round;
  second.open();
  await work;
});

it('unlock() of a lock outside all scopes ends what work took that outlived its scope', async () => {
  const { open, opened } = gate();
  let work: Promise<unknown> = Promise.resolve();
  await lock.run(() => {
    work = opened.then(() => other.lock());
  });
  open();
  await work;
  await other.unlock();
});

it('A caller that waits inside a scope gives up when its waitTime is over, and acquires the lock itself when the scope is', async () => {
  let waiting: Promise<Lease> | undefined;
  await lock.run(async () => {
    const nested = await lock.lock();
    waiting = lock.lock();
    const late = await time.settled(lock.lock({ waitTime: 20 }));
    expect(late).toMatchObject({ after: 20, error: { name: 'LockTimeoutError' } });
    expect(nested.remaining).toBeGreaterThan(0);
  });
  const lease = await waiting;
  lease?.assertHeld();
  await lock.unlock();
  expect(lease?.remaining).toBe(0);
});

it('A lock is in use while a task runs whose lease was unlocked early', async () => {
  await lock.run(async (lease) => {
    await lease.unlock();
    expect(lock.isInUse).toBe(true);
  });
  expect(lock.isInUse).toBe(false);
});

it('A run is published as a hold, and so is a nested one as a re-entry, but no nested lease', async () => {
  const nested = () => lock.run(async () => (await lock.lock()).unlock());
  const messages = await published<HoldMessage>('hold', () => lock.run(nested));
  expect(messages.map(({ isReentry }) => isReentry)).toEqual([true, false]);
});

it.each(['the same key', 'other keys'])(
  'A scope that is over is let go, though the next round of a worker was started inside it (%s)',
  async (keys) => {
    // Every lock is free. Unlike a mock it keeps nothing: a promise refers to the scope that it was made in.
    const client: RedisClient = { eval: async () => 1, evalSha: async () => 1 };
    const rounds = new RedisLockRegistry(client, { registryKey: 'rounds', cacheCapacity: 2 });
    const scopes: WeakRef<Scope>[] = [];
    let last: Scope | undefined;
    await new Promise<void>((resolve, reject) => {
      const round = (i: number): void => {
        if (i === 5) {
          // What the scope before took is gone.
          rounds.expireUnusedOlderThan(-1);
          collectGarbage();
        }
        const task = async (): Promise<void> => {
          last = Scope.current();
          scopes.push(new WeakRef(last as Scope));
          const taken = rounds.obtain(`taken ${i}`);
          await taken.lock();
          await taken.unlock();
          if (i < 10) setImmediate(round, i + 1);
          else setImmediate(resolve);
        };
        rounds.run(keys === 'the same key' ? 'key' : `key ${i}`, task).catch(reject);
      };
      round(1);
    });
    expect(scopes).toHaveLength(10);
    await untilCollected(scopes[3] as WeakRef<Scope>);
    expect(scopes.at(-1)?.deref()).toBe(last);
  },
);

it('A scope that goes on for long keeps nothing of the many locks that were taken in it and are gone (P8)', async () => {
  const client: RedisClient = { eval: async () => 1, evalSha: async () => 1 };
  const rounds = new RedisLockRegistry(client, { registryKey: 'rounds', cacheCapacity: 2 });
  const made: WeakRef<object>[] = [];
  const Native = WeakRef;
  const Noted = class<T extends WeakKey> extends Native<T> {
    constructor(target: T) {
      super(target);
      made.push(new Native(this));
    }
  };
  await rounds.run('key', async () => {
    for (let i = 1; i <= 300; i++) {
      const taken = rounds.obtain(`taken ${i}`);
      globalThis.WeakRef = Noted;
      await taken.lock().finally(() => (globalThis.WeakRef = Native));
      await taken.unlock();
      if (i % 10 > 0) continue;
      await new Promise(setImmediate);
      collectGarbage();
    }
    expect(made).toHaveLength(300);
    expect(made.filter((one) => one.deref() !== undefined).length).toBeLessThan(100);
  });
});

it.each(['waits for its turn', 'has got its turn', 'waits for the extension of the lease'])(
  'A nested call that %s gives up with the reason of its signal, and leaves neither its turn nor a listener',
  async (when) => {
    const abort = new AbortController();
    const { signal } = abort;
    const task = async () => {
      await (await lock.lock({ signal })).unlock();
      const isExtending = when.endsWith('lease');
      const first = isExtending ? undefined : await lock.lock();
      if (isExtending) redis.evalSha.mockImplementationOnce(silence);
      const nested = lock.lock({ signal, ...(isExtending && { ttl: 100_000 }) });
      await time.advance(1);
      if (when.startsWith('has')) void first?.unlock();
      abort.abort('left');
      expect(await time.settled(nested)).toEqual({ after: 0, error: 'left' });
      await first?.unlock();
      await expect(lock.lock({ signal })).rejects.toBe('left');
      await (await lock.lock()).unlock();
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    };
    await lock.run(task, { ttl: 60_000 });
  },
);
