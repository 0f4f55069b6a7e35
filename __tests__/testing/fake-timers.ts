import type { Lease } from '../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { until } from '../support/until';

/** What a test framework calls the functions that its fake timers replace. */
type Faked = 'performance' | 'Date' | 'setImmediate' | 'nextTick' | 'queueMicrotask';

/** jest or vitest. */
export interface Framework {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
  afterEach(body: () => Promise<void>): void;
  /** All functions are faked but these. */
  useFakeTimers(real: readonly Faked[]): void;
  useRealTimers(): void;
  setSystemTime(date: Date): void;
  /** With the promise jobs between the timers. */
  advance(ms: number): Promise<unknown>;
  /** Without. */
  advanceAtOnce(ms: number): unknown;
}

const { setImmediate: setRealImmediate } = globalThis;

/** A turn of the real event loop, with all promise jobs. */
function realTurn(): Promise<void> {
  return new Promise((resolve) => setRealImmediate(resolve));
}

/** What a test may leave real. */
const COMBINATIONS: readonly (readonly Faked[])[] = [
  [],
  ['performance'],
  ['Date'],
  ['performance', 'Date'],
  ['nextTick', 'queueMicrotask'],
  ['performance', 'setImmediate', 'nextTick', 'queueMicrotask'],
];

/** ms; a little more than what a lease gives up of its ttl. */
const MARGIN = 100;

function check(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`Expected ${what}`);
}

function equal(actual: unknown, expected: unknown): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`Expected ${wanted}, got ${got}`);
}

/** How a promise has settled by now: its error's name, its value, or that it is pending. */
function outcomeOf(promise: Promise<unknown>): { now: unknown } {
  const outcome: { now: unknown } = { now: 'pending' };
  promise.then(
    (value) => {
      outcome.now = value === null ? null : 'fulfilled';
    },
    (error: Error) => {
      outcome.now = error.name;
    },
  );
  return outcome;
}

/** What a test with fake timers may rely on, in every framework. */
export function fakeTimers(framework: Framework): void {
  const { describe, it, afterEach, useFakeTimers, useRealTimers, setSystemTime, advance, advanceAtOnce } = framework;
  const registries: InMemoryLockRegistry[] = [];

  const open = (options?: ConstructorParameters<typeof InMemoryLockRegistry>[0]) => {
    const registry = new InMemoryLockRegistry({ onWarning: () => undefined, ...options });
    registries.push(registry);
    return registry;
  };

  /** Two registries, as of two processes. */
  const openTwo = () => {
    const locks = new InMemoryLocks();
    return { locks, ours: open({ locks, name: 'ours' }), theirs: open({ locks, name: 'theirs' }) };
  };

  afterEach(async () => {
    // As in an application's tests: with the timers of the test, and whatever it has left behind.
    for (const { locks } of registries) locks.comeBack();
    await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
    useRealTimers();
  });

  for (const real of COMBINATIONS) {
    describe(`with fake timers, ${real.length === 0 ? 'all of them' : `but real ${real.join(', ')}`}`, () => {
      it('locks and unlocks without a timer', async () => {
        useFakeTimers(real);
        const registry = open();
        const lease = await registry.obtain('key').lock();
        equal(await registry.obtain('key').tryLock(), null);
        await lease.unlock();
        equal(await registry.run('key', () => 'done'), 'done');
        await registry.close();
      });

      it('counts a lease down by the fake clock, and by no other', async () => {
        useFakeTimers(real);
        const lease = await open().obtain('key').lock({ ttl: 60_000 });
        const before = lease.remaining;
        await realTurn();
        equal(lease.remaining, before);
        await advance(20_000);
        equal(Math.round(before - lease.remaining), 20_000);
        await advance(before - 20_000 - MARGIN);
        lease.assertHeld();
        equal(lease.signal.aborted, false);
        await advance(MARGIN + 1);
        equal([lease.signal.aborted, (lease.signal.reason as { reason: string }).reason], [true, 'expired']);
      });

      it('renews a lease for an hour, and loses it at the next renewal after it was stolen', async () => {
        useFakeTimers(real);
        const { locks, ours } = openTwo();
        const lease = await ours.obtain('key').lock();
        const { signal } = lease;
        await advance(3_600_000);
        lease.assertHeld();
        equal(locks.holder('key')?.name, 'ours');
        locks.steal('key');
        equal(signal.aborted, false);
        await advance(20_000);
        equal((signal.reason as { reason: string }).reason, 'stolen');
      });

      it('gives the lock to the next waiter when it expires, in the order in which they came', async () => {
        useFakeTimers(real);
        const { locks, ours, theirs } = openTwo();
        const order: string[] = [];
        const enter = (name: string) => async () => void order.push(`${name}: ${locks.holder('key')?.name}`);
        const first = await ours.obtain('key').lock({ ttl: 30_000 });
        const waiting = [
          theirs.run('key', enter('1st')),
          ours.run('key', enter('2nd')),
          theirs.run('key', enter('3rd')),
        ];
        await advance(29_000);
        equal(order, []);
        await advance(1_001);
        await Promise.all(waiting);
        equal(order, ['1st: theirs', '2nd: ours', '3rd: theirs']);
        equal(first.signal.aborted, true);
      });

      it('ends a wait after its waitTime, and not before', async () => {
        useFakeTimers(real);
        const { ours, theirs } = openTwo();
        await ours.obtain('key').lock();
        const waits = [
          outcomeOf(theirs.obtain('key').lock({ waitTime: 5_000 })),
          outcomeOf(theirs.obtain('key').tryLock({ waitTime: 5_000 })),
        ];
        await advance(4_999);
        equal(
          waits.map(({ now }) => now),
          ['pending', 'pending'],
        );
        await advance(1);
        equal(
          waits.map(({ now }) => now),
          ['LockTimeoutError', null],
        );
      });

      it('takes a silence for a failure: the holder loses its lease, a waiter gets an error, and it ends', async () => {
        useFakeTimers(real);
        const { locks, ours, theirs } = openTwo();
        const lease = await ours.obtain('key').lock({ ttl: 30_000, renew: true });
        const { signal } = lease;
        const waiting = outcomeOf(theirs.obtain('key').lock());
        await advance(5_000);
        locks.goSilent();
        const later = outcomeOf(theirs.obtain('key').tryLock());
        await advance(4_900);
        equal([waiting.now, later.now], ['pending', 'pending']);
        await advance(6_000);
        equal([waiting.now, later.now], ['CannotAcquireLockError', 'CannotAcquireLockError']);
        await advance(30_000);
        equal((signal.reason as { reason: string }).reason, 'unconfirmed');
        locks.comeBack();
        await advance(2_000);
        equal(locks.holder('key'), undefined);
        check((await theirs.obtain('key').tryLock()) !== null, 'a free lock');
      });

      it('does not care which date it is', async () => {
        useFakeTimers(real);
        const lease = await open().obtain('key').lock({ ttl: 60_000 });
        const before = lease.remaining;
        setSystemTime(new Date('2040-01-01'));
        equal(lease.remaining, before);
        setSystemTime(new Date('2020-01-01'));
        equal(lease.remaining, before);
        await advance(before + 1);
        equal(lease.remaining, 0);
      });

      it('goes on when timers are advanced in one go', async () => {
        useFakeTimers(real);
        const { ours, theirs } = openTwo();
        const lease = await ours.obtain('key').lock();
        advanceAtOnce(600_000);
        lease.assertHeld();
        const waiting = outcomeOf(theirs.obtain('key').lock({ waitTime: 1_000 }));
        advanceAtOnce(1_000);
        await realTurn();
        equal(waiting.now, 'LockTimeoutError');
      });

      it('closes in the time that it says', async () => {
        useFakeTimers(real);
        const registry = open();
        const lease = await registry.obtain('key').lock();
        const closing = outcomeOf(registry.close({ timeout: 3_000 }));
        await advance(2_999);
        equal([closing.now, lease.signal.aborted], ['pending', false]);
        await advance(1);
        equal([closing.now, lease.signal.aborted], ['fulfilled', true]);
      });

      it('goes on with a registry that was used before, and after', async () => {
        const registry = open();
        await registry.run('key', () => undefined);
        const early = await registry.obtain('early').lock({ ttl: 60_000 });
        useFakeTimers(real);
        early.assertHeld();
        const lease = await registry.obtain('key').lock({ ttl: 90_000, renew: true });
        await advance(60_000);
        equal(early.signal.aborted, true);
        await advance(600_000);
        lease.assertHeld();
        useRealTimers();
        lease.assertHeld();
        const short: Lease = await registry.obtain('short').lock({ ttl: 50 });
        await until(() => short.signal.aborted);
        const renewed = await registry.obtain('renewed').lock({ ttl: 300, renew: true });
        let { remaining } = renewed;
        await until(() => {
          const before = remaining;
          remaining = renewed.remaining;
          return remaining > before;
        });
      });
    });
  }
}
