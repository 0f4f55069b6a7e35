import type { Lease } from '../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { until } from '../support/until';

/** What a test framework calls the functions that its fake timers replace. */
type Faked = 'performance' | 'Date' | 'setImmediate' | 'nextTick' | 'queueMicrotask';

/** A test framework, or a library of fake timers in one. */
export interface Framework {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
  afterEach(body: () => Promise<void>): void;
  /** All functions are faked but these. */
  useFakeTimers(real: readonly Faked[]): void;
  useRealTimers(): void;
  /** `undefined`: it has one time for the timers and the date. */
  setSystemTime: ((date: Date) => void) | undefined;
  /** With the promise jobs between the timers. */
  advance(ms: number): Promise<unknown>;
  /** Without. `undefined`: its timers see the time at the end of the step, as in a process that was frozen. */
  advanceAtOnce: ((ms: number) => unknown) | undefined;
}

const { setImmediate: setRealImmediate } = globalThis;

/** A turn of the real event loop, with all promise jobs. */
export function realTurn(): Promise<void> {
  return new Promise((resolve) => setRealImmediate(resolve));
}

/** For a framework without a way of its own: advances in small steps, each followed by its promise jobs. */
export async function inSteps(ms: number, advance: (ms: number) => void): Promise<void> {
  let left = ms;
  do {
    const step = Math.min(left, 100);
    advance(step);
    left -= step;
    await realTurn();
  } while (left > 0);
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
export function fakeTimers(framework: Framework, combinations = COMBINATIONS): void {
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

  for (const real of combinations) {
    describe(`with fake timers, ${real.length === 0 ? 'all of them' : `but real ${real.join(', ')}`}`, () => {
      it('A registry under fake timers locks and unlocks without a timer', async () => {
        useFakeTimers(real);
        const registry = open();
        const lease = await registry.obtain('key').lock();
        equal(await registry.obtain('key').tryLock(), null);
        await lease.unlock();
        equal(await registry.run('key', () => 'done'), 'done');
        await registry.close();
      });

      it('A registry under fake timers counts a lease down by the fake clock, and by no other', async () => {
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

      it('A registry under fake timers renews a lease for ten minutes, and loses it at the next renewal after it was stolen', async () => {
        useFakeTimers(real);
        const { locks, ours } = openTwo();
        const lease = await ours.obtain('key').lock();
        const { signal } = lease;
        await advance(600_000);
        lease.assertHeld();
        equal(locks.holder('key')?.name, 'ours');
        locks.steal('key');
        equal(signal.aborted, false);
        await advance(20_000);
        equal((signal.reason as { reason: string }).reason, 'stolen');
      });

      it('A registry under fake timers gives the lock to the next waiter when it expires, in the order in which they came', async () => {
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

      it('A registry under fake timers ends a wait after its waitTime, and not before', async () => {
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

      it('A registry under fake timers takes a silence for a failure: the holder loses its lease, a waiter gets an error, and it ends', async () => {
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

      if (setSystemTime !== undefined) {
        it('A registry under fake timers does not care which date it is', async () => {
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
      }

      if (advanceAtOnce !== undefined) {
        it('A registry under fake timers goes on when timers are advanced in one go', async () => {
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
      }

      it('A registry under fake timers closes in the time that it says', async () => {
        useFakeTimers(real);
        const registry = open();
        const lease = await registry.obtain('key').lock();
        const closing = outcomeOf(registry.close({ timeout: 3_000 }));
        await advance(2_999);
        equal([closing.now, lease.signal.aborted], ['pending', false]);
        await advance(1);
        equal([closing.now, lease.signal.aborted], ['fulfilled', true]);
      });

      for (const silentFor of [0, 700, 20_000]) {
        it(`A registry under fake timers closes without a timer in a silence of ${silentFor} ms, whatever is in flight`, async () => {
          useFakeTimers(real);
          const { locks, ours, theirs } = openTwo();
          const take = (key: string) => ours.obtain(key).lock({ ttl: 300_000 });
          const [, unlocked, renewed] = await Promise.all(['held', 'unlocked', 'renewed'].map(take));
          await theirs.obtain('taken').lock({ ttl: 300_000 });
          const task = outcomeOf(ours.run('task', () => new Promise(() => undefined)));
          const waiting = outcomeOf(ours.obtain('taken').lock());
          await realTurn();
          locks.goSilent();
          const left = new AbortController();
          const calls = [
            unlocked?.unlock(),
            renewed?.renew(),
            ours.obtain('free').tryLock(),
            ours.obtain('left').lock({ signal: left.signal }),
            ours.run('run', () => undefined),
            ours.multi(['multi 1', 'multi 2']).lock(),
            ours.semaphore('semaphore', { permits: 2 }).lock(),
            ours.obtain('held').inspect(),
            ours.obtain('taken').forceUnlock(),
          ].map((call) => outcomeOf(call as Promise<unknown>));
          left.abort();
          await advance(silentFor);
          const closing = outcomeOf(ours.close({ timeout: 0 }));
          for (let turn = 0; turn < 20; turn++) await realTurn();
          equal(
            [closing.now, waiting.now === 'pending', calls.map(({ now }) => now === 'pending')],
            ['fulfilled', false, calls.map(() => false)],
          );
          equal(task.now, 'pending');
          locks.comeBack();
          await realTurn();
          const keys = ['unlocked', 'free', 'left', 'run', 'multi 1', 'multi 2', 'semaphore', 'taken'];
          equal(
            keys.filter((key) => locks.holder(key) !== undefined),
            [],
          );
          check((await theirs.obtain('free').tryLock()) !== null, 'locks for another registry');
        });
      }

      it('A registry under fake timers goes on with a registry that was used before, and after', async () => {
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
        const renewed = await registry.obtain('renewed').lock({ ttl: 1_500, renew: true });
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
