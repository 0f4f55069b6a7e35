import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, LockLostError, type MultiLease } from '../../lib';
import type { InternalLease } from '../../lib/core/internal-lease';
import type { RedisLock } from '../../lib/core/lock';
import type { LockRequest } from '../../lib/core/request';
import { CallsForSeveral } from '../../lib/core/several';
import type { Wait } from '../../lib/core/wait';
import { MultiAcquisition } from '../../lib/multi/multi-acquisition';
import { MultiKeyLease } from '../../lib/multi/multi-lease';
import { type MultiLock, multiKeys } from '../../lib/multi/multi-lock';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { FakeClock } from '../support/fake-clock';
import { lateReply } from '../support/mock-redis';
import { published } from '../support/published';

const time = FakeClock.install();
/** What was asked of the parts, in order. */
let log: string[];

beforeEach(() => {
  log = [];
});

/** The lease of one key. */
class Part {
  readonly isReentry: boolean = false;
  readonly fencingToken: number | undefined = undefined;
  readonly remaining: number = 1_000;
  isLost = false;
  readonly lost = new AbortController();
  /** How often its signal was read. */
  listeners = 0;
  readonly owner: string;
  readonly key: string;
  renew = jest.fn<InternalLease['renew']>().mockResolvedValue(undefined);
  unlock = jest.fn<() => Promise<void>>(async () => void log.push(`unlock ${this.key}`));
  [Symbol.asyncDispose] = jest.fn<() => Promise<void>>(async () => void log.push(`dispose ${this.key}`));

  constructor(key: string, given: Partial<Part> = {}) {
    this.key = key;
    this.owner = `owner of ${key}`;
    Object.assign(this, given);
  }

  get signal(): AbortSignal {
    this.listeners++;
    return this.lost.signal;
  }

  checkLost = (): boolean => this.isLost;
  lossError = (result?: unknown): LockLostError => new LockLostError(this.key, 'stolen', result);
  assertHeld(): void {
    if (this.isLost) throw this.lossError();
  }
  holdAtLeast(ms: number): void {
    log.push(`${this.key} is held for ${ms} ms`);
  }
  endRenewal(): void {
    log.push(`${this.key} is not renewed`);
  }
  lose(): void {
    this.isLost = true;
    this.lost.abort(this.lossError());
  }
}

const leaseOf = (...parts: Part[]) => new MultiKeyLease('all', parts as unknown as InternalLease[]);

describe('The lease of several keys', () => {
  let [a, b] = [new Part('a'), new Part('b')];
  let lease = leaseOf(a, b);
  beforeEach(() => {
    [a, b] = [new Part('a', { fencingToken: 7 }), new Part('b', { remaining: 900, isReentry: true })];
    lease = leaseOf(a, b);
  });

  it('The lease of several keys says what its parts say together', async () => {
    expect([lease.owner, lease.remaining, lease.fencingToken]).toEqual(['owner of a', 900, undefined]);
    expect([...lease.fencingTokens]).toEqual([['a', 7]]);
    expect([lease.isReentry, leaseOf(b, b).isReentry, leaseOf().owner]).toEqual([false, true, '']);
    expect(inspect(lease)).toBe("MultiLease { key: 'all', remaining: 900 }");
    lease.assertHeld();
    lease.holdAtLeast(50);
    expect(log).toEqual(['a is held for 50 ms', 'b is held for 50 ms']);
    await expect(lease.eval()).rejects.toThrow(
      'The lease of 2 keys cannot run a script: a script is checked against one lock: take a lease with `obtain(key).lock()` for it',
    );
    await expect(lease.detach()).rejects.toThrow(/2 keys.*take and detach one for each key/);
  });

  it('The lease of several keys is lost as soon as one of its parts is', () => {
    expect(lease.checkLost()).toBe(false);
    expect(lease.lossError().key).toBe('a');
    b.isLost = true;
    expect(lease.checkLost()).toBe(true);
    expect(lease.lossError('done')).toMatchObject({ key: 'b', result: 'done' });
    expect(() => lease.assertHeld()).toThrow('"b" was lost');
  });

  it('The lease of several keys renews each of them, with the timeout, and says which one failed', async () => {
    await lease.renew(5_000, 50);
    for (const { renew } of [a, b]) expect(renew).toHaveBeenCalledWith(5_000, 50);
    const failure = new Error('of b');
    b.renew.mockRejectedValueOnce(failure);
    await expect(lease.renew()).rejects.toBe(failure);
    expect(a.renew).toHaveBeenCalledTimes(2);
  });

  it('The renewal of several keys ends with the first that fails, and does not wait for the others', async () => {
    const failure = new Error('of b');
    const late = lateReply();
    a.renew.mockImplementationOnce(() => late.promise as Promise<void>);
    b.renew.mockRejectedValueOnce(failure);
    const renewed = time.settled(lease.renew());
    await time.advance(10);
    late.reject(new Error('of a'));
    expect(await renewed).toEqual({ after: 0, error: failure });
  });

  it.each([
    ['unlock', () => lease.unlock()],
    ['dispose', () => lease[Symbol.asyncDispose]()],
  ])('The lease of several keys ends each of them once: %s', async (how, end) => {
    expect(lease.isUnlocked).toBe(false);
    const late = lateReply();
    const ofB = how === 'unlock' ? b.unlock : b[Symbol.asyncDispose];
    ofB.mockImplementationOnce(async () => void log.push(`${how} ${await late.promise}`));
    const ending = end();
    let isOver = false;
    void ending.then(() => (isOver = true));
    expect([lease.isUnlocked, lease.remaining]).toEqual([true, 0]);
    await time.advance(0);
    expect(isOver).toBe(false);
    late.resolve('b');
    await ending;
    await lease.unlock();
    await lease[Symbol.asyncDispose]();
    expect([log, a.listeners]).toEqual([[`${how} a`, `${how} b`], 0]);
    expect(() => lease.assertHeld()).toThrow('is not held by this lease any more');
    await expect(lease.renew()).rejects.toThrow('is not held by this lease any more');
  });

  it('The lease of several keys tells the first caller of unlock() which release failed', async () => {
    const failure = new Error('of a');
    a.unlock.mockRejectedValue(failure);
    const late = lateReply();
    b.unlock.mockImplementation(async () => void log.push(`unlock ${await late.promise}`));
    const ended = time.settled(lease.unlock());
    await time.advance(30);
    late.resolve('b');
    expect(await ended).toMatchObject({ after: 30, error: failure });
    await lease.unlock();
    expect(log).toEqual(['unlock b']);
  });

  it('The signal of the lease of several keys aborts with the first loss, and listens until then', () => {
    const ends = jest.fn();
    lease.publishEnd = ends;
    const { signal } = lease;
    expect([lease.signal, signal.aborted, getEventListeners(a.signal, 'abort').length]).toEqual([signal, false, 1]);
    b.lose();
    a.lose();
    expect(signal.reason).toMatchObject({ key: 'b', reason: 'stolen' });
    expect(ends.mock.calls).toEqual([[expect.objectContaining({ key: 'b' })]]);
    for (const part of [a, b]) expect(getEventListeners(part.signal, 'abort')).toHaveLength(0);
    expect(leaseOf(new Part('c'), b).signal.aborted).toBe(true);
  });

  it('unlock() of the lease of several keys ends its section by a loss that it finds, also where a listener to the loss unlocks too', async () => {
    for (const find of [() => a.checkLost(), () => undefined]) {
      const ends = jest.fn();
      [a, b] = [new Part('a'), new Part('b')];
      lease = leaseOf(a, b);
      lease.publishEnd = ends;
      lease.signal.addEventListener('abort', () => void lease.unlock());
      a.checkLost = () => {
        if (!a.isLost) a.lose();
        return true;
      };
      find();
      await lease.unlock();
      expect([ends.mock.calls, log.splice(0)]).toEqual([[[expect.any(LockLostError)]], ['unlock a', 'unlock b']]);
      expect(lease.signal.aborted).toBe(true);
    }
  });

  it.each([
    ['unlock', () => lease.unlock()],
    ['dispose', () => lease[Symbol.asyncDispose]()],
  ])('The signal of the lease of several keys aborts where a release finds a loss: %s', async (_how, end) => {
    const { signal } = lease;
    const lost = async () => {
      await time.advance(0);
      a.lose();
      throw a.lossError();
    };
    a.unlock.mockImplementation(lost);
    a[Symbol.asyncDispose].mockImplementation(() => lost().catch(() => undefined));
    await Promise.allSettled([end()]);
    expect([signal.reason, getEventListeners(a.lost.signal, 'abort')]).toEqual([a.lossError(), []]);
  });

  it('unlock() of the lease of several keys ends its section once, though who hears of the end unlocks too', async () => {
    const ends = jest.fn(() => void lease.unlock());
    lease.publishEnd = ends;
    await lease.unlock();
    expect([ends.mock.calls.length, log]).toEqual([1, ['unlock a', 'unlock b']]);
  });

  it('The signal of the lease of several keys does not listen from unlock() on', async () => {
    const ends = jest.fn();
    lease.publishEnd = ends;
    const { signal } = lease;
    await lease.unlock();
    expect(ends.mock.calls).toEqual([[undefined]]);
    b.lose();
    const late = leaseOf(a, new Part('c'));
    await late.unlock();
    expect([signal.aborted, late.signal.aborted]).toEqual([false, false]);
    expect(getEventListeners(a.signal, 'abort')).toHaveLength(0);
  });
});

const REQUEST = { waitTime: Number.POSITIVE_INFINITY, ttl: 3_000, renew: true, minHold: 0 } as LockRequest;

/** What a part answers to each call, in order. Later calls are granted. */
type Answer = null | Error | Part | Promise<Part | null>;

/** An answer that comes when the test says so. */
function granting() {
  const { promise, resolve } = lateReply();
  return [promise as Promise<Part | null>, resolve as (lease: Part | null) => void] as const;
}

describe('The acquisition of several keys', () => {
  let asked: { key: string; request: LockRequest; wait: Wait }[];
  const connection = {
    allOrNone: (ask: () => void) => ask(),
    areTogether: () => false,
    lastError: undefined as Error | undefined,
  };
  const services = { connection, several: new CallsForSeveral(), settings: { commandTimeout: 500 }, leastTimeout: 50 };

  beforeEach(() => {
    asked = [];
    connection.lastError = undefined;
  });

  const lockOf = (key: string, ...answers: Answer[]) => {
    const enter = async (request: LockRequest, isRun: boolean, wait: Wait) => {
      asked.push({ key, request, wait });
      expect(isRun).toBe(false);
      const answer = answers.length === 0 ? new Part(key) : answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    };
    return { key, names: { lock: key }, passing: { openProtocol: () => ({}) }, services, isBusyHere: false, enter };
  };

  /** Who was asked, and for how long each of them was waited. */
  const calls = () => asked.map(({ key, request }) => `${key} ${request.waitTime}`);

  const acquisitionOf = (parts: object[], options: Partial<LockRequest> = {}) =>
    new MultiAcquisition('all', parts as RedisLock[], { ...REQUEST, ...options }, false);

  const keysOf = (leases: readonly InternalLease[] | null) => leases?.map(({ key }) => key);

  it('An acquisition of several keys asks for all of them at once, each by an attempt of its own', async () => {
    const { signal } = new AbortController();
    const inside = new Part('b', { isReentry: true, remaining: 9_000 });
    const acquisition = acquisitionOf([lockOf('a'), lockOf('b', inside)], {
      waitTime: 1_000,
      renew: false,
      minHold: 5,
      signal,
    });
    const leases = await acquisition.acquire();
    expect(keysOf(leases)).toEqual(['a', 'b']);
    expect(calls()).toEqual(['a 0', 'b 0']);
    for (const { request, wait } of asked) {
      expect(request).toMatchObject({ waitTime: 0, renew: true, minHold: 0, ttl: 3_000 });
      expect(request.signal).toBe(signal);
      expect(wait).toBe(acquisition.wait);
    }
    expect(log).toEqual(['a is not renewed', 'a is held for 5 ms', 'b is not renewed', 'b is held for 5 ms']);
    for (const lease of leases as unknown as Part[]) expect(lease.renew).not.toHaveBeenCalled();
    expect(acquisition.wait.isOver).toBe(true);
  });

  it('An acquisition of several keys waits for one that is refused, without those behind it', async () => {
    const acquisition = acquisitionOf([lockOf('a'), lockOf('b', null), lockOf('c')], { waitTime: 1_000 });
    expect(keysOf(await acquisition.acquire())).toEqual(['a', 'b', 'c']);
    expect(calls()).toEqual(['a 0', 'b 0', 'c 0', 'b 1000', 'c 0']);
    expect(log).toEqual(['dispose c']);
    expect(acquisition.wait.holdsOthers).toBe(true);
  });

  it('An acquisition of several keys whose time ends while it gives others back does not go on with one attempt', async () => {
    const behind = new Part('b');
    behind[Symbol.asyncDispose].mockImplementation(async () => {
      time.now += 1_000;
    });
    await acquisitionOf([lockOf('a', null), lockOf('b', behind)], { waitTime: 1_000 }).acquire();
    expect(calls().slice(0, 3)).toEqual(['a 0', 'b 0', 'a 1000']);
  });

  it('An acquisition of several keys holds no others while it waits for the first one', async () => {
    const acquisition = acquisitionOf([lockOf('a', null), lockOf('b')]);
    await acquisition.acquire();
    expect(acquisition.wait.holdsOthers).toBe(false);
    expect(calls()).toEqual(['a 0', 'b 0', 'a Infinity', 'b 0']);
  });

  it('An acquisition of several keys asks for none behind one that its process is busy with', async () => {
    const [late, grant] = granting();
    const busy = { ...lockOf('b', late), isBusyHere: true };
    const acquiring = acquisitionOf([lockOf('a'), busy, lockOf('c')]).acquire();
    expect(calls()).toEqual(['a 0', 'b 0']);
    grant(new Part('b'));
    expect(keysOf(await acquiring)).toEqual(['a', 'b', 'c']);
    expect(calls()).toEqual(['a 0', 'b 0', 'c 0']);
  });

  it.each([
    ['after one attempt', 0, ['a 0', 'b 0']],
    ['after its waitTime', 1_000, ['a 0', 'b 0', 'b 1000']],
  ])('A refused acquisition of several keys leaves nothing, and says by whom: %s', async (_, waitTime, all) => {
    const acquisition = acquisitionOf([lockOf('a'), lockOf('b', null, null)], { waitTime });
    expect(await acquisition.acquire()).toBeNull();
    expect([acquisition.refusing?.key, calls(), log]).toEqual(['b', all, ['dispose a']]);
    expect(acquisition.wait.isOver).toBe(true);
  });

  it.each<[string, Error, number, string[]]>([
    ['of Redis, which one attempt reports', new CannotAcquireLockError('no', 'b'), 0, ['a 0', 'b 0']],
    ['of Redis, which a wait tries again', new CannotAcquireLockError('no', 'b'), 1_000, ['a 0', 'b 0', 'b 1000']],
    ['of another kind', new TypeError('no'), 1_000, ['a 0', 'b 0']],
  ])('An acquisition of several keys meets a failure %s', async (_, failure, waitTime, all) => {
    const acquiring = acquisitionOf([lockOf('a'), lockOf('b', failure)], { waitTime }).acquire();
    if (all.length === 3) expect(keysOf(await acquiring)).toEqual(['a', 'b']);
    else await expect(acquiring).rejects.toBe(failure);
    expect([calls(), log]).toEqual([all, all.length === 3 ? [] : ['dispose a']]);
  });

  it.each<[string, Partial<LockRequest>, Partial<Part>, number[]]>([
    ['a fixed lease has its ttl', { renew: false }, { remaining: 2_999 }, [3_000]],
    ['a fixed lease that has it', { renew: false }, { remaining: 3_000 }, []],
    ['a renewed lease has its minHold', { minHold: 2_000 }, { remaining: 1_999 }, [2_000]],
    ['a renewed lease without one', {}, { remaining: 1 }, []],
    ['the longer of both', { renew: false, minHold: 2_000 }, { remaining: 2_500 }, [3_000]],
  ])('After a wait, leases of several keys last as a grant does: %s', async (_, options, first, renewals) => {
    const held = new Part('a', first);
    const waited = new Part('b', { remaining: 9_000 });
    await acquisitionOf([lockOf('a', held), lockOf('b', null, waited)], options).acquire();
    expect(held.renew.mock.calls).toEqual(renewals.map((ttl) => [ttl]));
    expect(waited.renew).not.toHaveBeenCalled();
  });

  it('Without a wait, the lease of a key that was entered again is renewed where it is short', async () => {
    const nested = { remaining: 1, isReentry: true, endRenewal: undefined as never };
    const parts = [new Part('a', { remaining: 1 }), new Part('b', nested)];
    await acquisitionOf(
      parts.map((part) => lockOf(part.key, part)),
      { renew: false },
    ).acquire();
    expect(parts.map(({ renew }) => renew.mock.calls.length)).toEqual([0, 1]);
  });

  it('A key of several that was lost during the wait is given back, and asked for again', async () => {
    const lost = new Part('a', { isLost: true });
    const acquisition = acquisitionOf([lockOf('a', lost), lockOf('b', null)]);
    expect(keysOf(await acquisition.acquire())).toEqual(['a', 'b']);
    expect([calls(), log]).toEqual([['a 0', 'b 0', 'b Infinity', 'a 0'], ['dispose a']]);
  });

  it.each<[string, boolean]>([
    ['fails, which rejects', false],
    ['finds a loss, which is made good', true],
  ])('The last renewal of a key of several %s', async (_, isLoss) => {
    const held = new Part('a', { isReentry: true, remaining: 1 });
    const failure = new Error('no');
    held.renew.mockImplementation(async () => {
      held.isLost = isLoss;
      throw failure;
    });
    const acquiring = acquisitionOf([lockOf('a', held), lockOf('b')], { renew: false }).acquire();
    if (!isLoss) {
      await expect(acquiring).rejects.toBe(failure);
      expect(log).toEqual(['dispose a', 'dispose b']);
      return;
    }
    expect((await acquiring)?.[0]).not.toBe(held);
    expect(calls()).toEqual(['a 0', 'b 0', 'a 0']);
  });

  const silent = () => new Promise<never>(() => undefined);

  it.each<[string, number, number, Error | undefined, string]>([
    ['at the commandTimeout of one attempt', 0, 500, undefined, 'Redis did not answer in time'],
    ['at its waitTime', 300, 300, undefined, 'Redis did not answer in time'],
    ['some ms after a waitTime that is over', 10, 50, undefined, 'Redis did not answer in time'],
    ['with the error of the client', 300, 300, new Error('connect ECONNREFUSED'), 'ECONNREFUSED'],
  ])('An acquisition of several keys that Redis does not answer ends %s', async (_, waitTime, ms, error, why) => {
    connection.lastError = error;
    const held = new Part('a', { isReentry: true, remaining: 1, renew: jest.fn(silent) });
    const answers = waitTime === 0 ? lockOf('a', held) : lockOf('a', silent());
    const ended = await time.settled(acquisitionOf([answers, lockOf('b')], { waitTime, renew: false }).acquire());
    expect(ended?.error).toMatchObject({ name: 'CannotAcquireLockError', key: 'all', cause: error });
    expect(String(ended?.error)).toContain(why);
    // At the end it waits for what it gives back, for a moment.
    expect(ended?.after).toBe(ms + (waitTime === 0 ? 0 : 50));
  });

  it('The commandTimeout of one attempt for several keys begins with the attempt, which has one of its own', async () => {
    const [late, grant] = granting();
    const held = new Part('a', { isReentry: true, remaining: 1, renew: jest.fn(silent) });
    const acquiring = acquisitionOf([lockOf('a', late)], { waitTime: 0, renew: false }).acquire();
    const ended = time.settled(acquiring);
    await time.advance(600);
    grant(held);
    await time.advance(60);
    expect(await ended).toMatchObject({ after: 650 });
  });

  it('The commandTimeout limits no acquisition of several keys that waits', async () => {
    const parts = [lockOf('a', null), lockOf('b', new Part('b'), silent())];
    expect(await time.settled(acquisitionOf(parts, { waitTime: 1_000 }).acquire())).toMatchObject({ after: 1_050 });
  });

  it('What is granted to an acquisition of several keys whose caller has left is given back', async () => {
    const [[late, grant], [never, refuse]] = [granting(), granting()];
    const stop = new AbortController();
    const reason = new Error('stop');
    const lost = { ...lockOf('c'), enter: () => Promise.reject(new Error('of c')) };
    const parts = [lockOf('a', late), lockOf('b', never), lost];
    const acquiring = acquisitionOf(parts, { signal: stop.signal }).acquire();
    const ended = time.settled(acquiring);
    await time.advance(10);
    stop.abort(reason);
    await time.advance(10);
    grant(new Part('a'));
    refuse(null);
    await time.advance(10);
    expect(log).toEqual(['dispose a']);
    expect(await ended).toEqual({ after: 20, error: reason });
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
  });

  it('An attempt for one of several keys, and a wait for it, end by the signal of the caller', async () => {
    const { signal } = new AbortController();
    await acquisitionOf([lockOf('a', null)], { signal }).acquire();
    expect(asked.map(({ request }) => request.signal === signal)).toEqual([true, true]);
  });

  it('What is given back before a wait is answered before the next attempt', async () => {
    let released = (): void => undefined;
    const [refused, behind] = [lockOf('a', null), new Part('b')];
    behind[Symbol.asyncDispose].mockImplementation(() => new Promise((resolve) => (released = resolve)));
    const acquiring = acquisitionOf([refused, lockOf('b', behind)]).acquire();
    await time.advance(10);
    expect(calls()).toEqual(['a 0', 'b 0', 'a Infinity']);
    released();
    await acquiring;
    expect(calls()).toHaveLength(4);
  });
});

describe('A lock of several keys', () => {
  let registry: InMemoryLockRegistry;
  let other: InMemoryLockRegistry;
  let lock: MultiLock;

  beforeEach(() => {
    const locks = new InMemoryLocks();
    [registry, other] = [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
    lock = registry.multi(['b', 'a', 'b']);
  });

  it('A lock of several keys has each key once, in the order of their code units', () => {
    expect([lock.keys, lock.key]).toEqual([['a', 'b'], 'a + b']);
    expect(multiKeys(['ä', 'a', 'Z'])).toEqual(['Z', 'a', 'ä']);
    const many = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`);
    expect(multiKeys(many(1_000))).toHaveLength(1_000);
    expect(() => multiKeys(many(1_001))).toThrow("Expected `keys` to be 1 to 1000 keys, got '1001 keys'");
    expect(() => multiKeys([])).toThrow(RangeError);
    expect(() => multiKeys(['a', ''])).toThrow(/`keys\[1\]`.*non-empty/);
    expect(() => multiKeys(['a', 7 as never])).toThrow(/`keys\[1\]`.*7/);
    expect(() => multiKeys('a' as never)).toThrow(/`keys`.*'a'/);
    expect(inspect(lock)).toBe("MultiLock { key: 'a + b', isAcquiredInThisProcess: false }");
  });

  it('A lock of several keys is acquired here while each of its keys is', async () => {
    const one = await registry.obtain('a').lock();
    expect(lock.isAcquiredInThisProcess).toBe(false);
    const two = await registry.obtain('b').lock();
    expect(lock.isAcquiredInThisProcess).toBe(true);
    await one.unlock();
    await two.unlock();
  });

  it('unlock() of a lock of several keys ends what lock() and tryLock() took, in its scope', async () => {
    await expect(lock.unlock()).rejects.toThrow('"a + b" is not held here through lock() or tryLock()');
    const leases = [await lock.lock()];
    await lock.unlock();
    const outside = (await lock.tryLock()) as MultiLease;
    const several = registry.multi(['d', 'e']);
    await registry.run('c', async () => {
      await expect(lock.unlock()).rejects.toThrow('not held');
      leases.push(await several.lock());
      await several.unlock();
    });
    outside.assertHeld();
    await lock.unlock();
    leases.push(outside);
    expect(leases.map(({ remaining }) => remaining)).toEqual([0, 0, 0]);
  });

  it('A lock of several keys runs a task in the scope of each, and says whether it ran', async () => {
    for (const call of [lock.run, lock.tryRun]) {
      await expect(call.call(lock, 'task' as never)).rejects.toThrow('Expected `task` to be');
    }
    const task = () => registry.run('a', () => registry.run('b', () => lock.isAcquiredInThisProcess));
    expect([await lock.run(task), await lock.tryRun(task)]).toEqual([true, { ran: true, value: true }]);
    const taken = await other.obtain('b').lock();
    expect([await lock.tryLock(), await lock.tryRun(task)]).toEqual([null, { ran: false }]);
    for (const call of [() => lock.lock({ waitTime: 20 }), () => lock.run(task, { waitTime: 20 })]) {
      const ended = await time.settled(call());
      expect(ended?.error).toMatchObject({ name: 'LockTimeoutError', key: 'b', waitTime: 20 });
    }
    await taken.unlock();
  });

  it.each(['run', 'tryRun'] as const)(
    'A run waits for a nested %s() of several keys that its task did not wait for',
    async (how) => {
      const taken = await other.obtain('b').lock();
      let nested: Promise<unknown> = Promise.resolve();
      const inside = async () => ({ holder: registry.locks.holder('a'), isHeld: lock.isAcquiredInThisProcess });
      const running = registry.run('a', () => {
        nested = lock[how](inside, { waitTime: 1_000 }).then((result) => Object(result).value ?? result);
      });
      await time.advance(1);
      await taken.unlock();
      expect(await nested).toMatchObject({ holder: { name: expect.any(String) }, isHeld: true });
      await running;
      expect(registry.locks.holder('a')).toBeUndefined();
    },
  );

  it.each(['asked', 'waited', 'nested, waited'])(
    'A lease of several keys holds each of them, though a scope that it entered again ended meanwhile: %s',
    async (how) => {
      const taken = how.endsWith('waited') ? await other.obtain('b').lock() : undefined;
      const startedInScope = async () => {
        const waits: Promise<MultiLease>[] = [];
        await registry.run('a', () => void waits.push(lock.lock()));
        await taken?.unlock();
        const lease = (await waits[0]) as MultiLease;
        lease.assertHeld();
        expect(await other.obtain('a').tryLock()).toBeNull();
        await lease.unlock();
      };
      if (how.startsWith('nested')) await registry.run('a', startedInScope);
      else await startedInScope();
    },
  );

  it('A call for several keys whose signal has aborted takes nothing', async () => {
    const reason = new Error('stop');
    await expect(lock.lock({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(registry.locks.holder('a')).toBeUndefined();
  });

  it('inspect() and forceUnlock() of several keys report the first one that is held', async () => {
    expect(await lock.inspect()).toMatchObject({ held: false });
    await other.obtain('b').lock();
    expect(await lock.inspect()).toMatchObject({ held: true, isOurs: false });
    expect(await lock.forceUnlock()).toMatchObject({ held: true, isOurs: false });
    expect(await lock.forceUnlock()).toMatchObject({ held: false });
  });

  it('Several keys with a minHold that is shorter than any ttl are acquired, though Redis has to confirm one after a wait', async () => {
    const before = await other.obtain('b').lock();
    const locking = lock.lock({ minHold: 1 });
    await time.advance(0);
    time.wallNow += 3_600_000;
    await before.unlock();
    await time.advance(200);
    (await locking).assertHeld();
  });

  it('A call for several keys is published as one', async () => {
    // Its locks are evicted, and others are cached for their keys.
    registry.expireUnusedOlderThan(-1);
    registry.multi(['a', 'b']);
    const messages = await published('acquire', async () => {
      await (await lock.lock({ waitTime: 500 })).unlock();
      await other.obtain('b').lock();
      await lock.tryLock();
    });
    const of = (waitTime: number, outcome: string) => ({ key: 'a + b', isReentry: false, waitTime, outcome });
    const theirs = expect.objectContaining({ key: 'b' });
    expect(messages).toMatchObject([of(500, 'acquired'), theirs, of(0, 'timed out')]);
  });

  it.each(['run', 'lock', 'lost'])('A section of several keys is published, once: %s', async (how) => {
    const messages = await published('hold', async () => {
      if (how === 'run') return lock.run(async () => (await lock.lock()).unlock());
      const lease = await lock.lock();
      if (how === 'lost') registry.locks.expire('b');
      if (how === 'lost') await lease.renew().catch(() => undefined);
      return lease.unlock().catch(() => undefined);
    });
    expect(messages).toHaveLength(1);
    expect(messages[0]).toMatchObject({ key: 'a + b', isReentry: false, outcome: how === 'lost' ? 'lost' : 'ended' });
  });
});
