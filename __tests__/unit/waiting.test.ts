import { describe, expect, it } from '@jest/globals';
import { Wait } from '../../lib/core/wait';
import { Waiting } from '../../lib/kinds/common/waiting';
import type { WantedMark } from '../../lib/kinds/common/wanted';
import type { Subscriber } from '../../lib/redis/subscriber';
import { FakeClock } from '../support/fake-clock';
import { FakeSubscriber } from '../support/fake-redis';

const time = FakeClock.install();

function start({ listens = true } = {}) {
  const subscriber = new FakeSubscriber();
  const waiting = new Waiting(
    {
      lock: 'k',
      channels: ['c', 'd'],
      meaningOf: (message) => (message === 'free' ? 'release' : message === 'left' ? 'left to pollers' : undefined),
    },
    listens ? (subscriber as unknown as Subscriber) : undefined,
    100,
  );
  /** Waits after a refusal. After how many ms it is over. */
  const wait = ({
    remaining = 60_000,
    roundTrip = 1,
    waitTime = 10_000,
    hintsBefore = undefined as number | undefined,
    holder = '',
  }) =>
    time
      .settled(
        waiting.wait(
          { granted: false, remaining, roundTrip, hintsBefore },
          new Wait('k', waitTime, undefined),
          undefined,
          holder === '' ? undefined : holder,
        ),
      )
      .then((end) => end?.after);
  return { subscriber, waiting, wait };
}

describe('A waiter', () => {
  it('A waiter whose messages come by way of another server marks the lock as one that polls', async () => {
    const subscriber = Object.assign(new FakeSubscriber(), { isElsewhere: false });
    const marked: number[] = [];
    const mark = { begin: (interval: number) => marked.push(interval), end: () => undefined } as unknown as WantedMark;
    const waited = { lock: 'k', channels: ['c'], meaningOf: () => undefined, mark };
    const waiting = new Waiting(waited, subscriber as unknown as Subscriber, 100);
    const wait = async () => {
      const refusal = { granted: false, remaining: 60_000, roundTrip: 1, hintsBefore: waiting.hints } as const;
      await time.settled(waiting.wait(refusal, new Wait('k', 10_000, undefined)));
    };
    const opening = wait();
    subscriber.last.opened();
    await opening;
    await wait();
    subscriber.isElsewhere = true;
    await wait();
    // At first, nothing is heard yet.
    expect(marked).toEqual([100, 0, 100]);
  });

  it('A waiter whose attempts take longer than others wait asks for a head start: of the shortest one of its wait', async () => {
    const subscriber = new FakeSubscriber();
    const marked: number[] = [];
    const mark = {
      begin: (headStart: number) => marked.push(headStart),
      end: () => undefined,
      acquired: () => undefined,
    } as unknown as WantedMark;
    const waited = { lock: 'k', channels: ['c'], meaningOf: () => undefined, mark };
    const waiting = new Waiting(waited, subscriber as unknown as Subscriber, 100);
    const wait = async (roundTrip: number) => {
      const refusal = { granted: false, remaining: 60_000, roundTrip, hintsBefore: waiting.hints } as const;
      await time.settled(waiting.wait(refusal, new Wait('k', 10_000, undefined)));
      return marked.at(-1);
    };
    const opening = wait(40);
    subscriber.last.opened();
    await opening;
    expect([await wait(40), await wait(19.5), await wait(30), await wait(2)]).toEqual([60, 30, 30, 0]);
    // A process that was near is not far because it is busy in its next wait.
    waiting.acquired();
    expect(await wait(80)).toBe(6);
    for (let wait = 0; wait < 5; wait++) waiting.acquired();
    expect(await wait(80)).toBe(100);
  });

  // ms until its next attempt.
  it.each<[string, Parameters<ReturnType<typeof start>['wait']>[0], number]>([
    ['every interval', {}, 100],
    ['when the key ends', { remaining: 30 }, 30],
    ['at least 1 ms later', { remaining: 0 }, 1],
    ['in time to be answered, before its wait ends', { waitTime: 71, roundTrip: 10 }, 50],
    ['no more than two intervals before that, after a slow answer', { waitTime: 281, roundTrip: 900 }, 80],
    ['no more, where an attempt could not be answered', { waitTime: 21, roundTrip: 10 }, 21],
    ['once more, 1 ms before there is no time for it', { waitTime: 22, roundTrip: 10 }, 1],
  ])('A waiter without messages polls %s', async (_, how, ms) => {
    expect(await start({ listens: false }).wait(how)).toBe(ms);
  });

  it('A waiter makes an attempt once its subscription is open, and then after ten intervals or at a message', async () => {
    const { subscriber, waiting, wait } = start();
    expect([waiting.isSubscribed, waiting.ownListeners, waiting.hints]).toEqual([false, 0, 0]);
    waiting.wake();
    waiting.onRelease(() => undefined)();
    const opening = wait({});
    expect([waiting.isSubscribed, waiting.ownListeners, subscriber.last.channels]).toEqual([false, 0, ['c', 'd']]);
    subscriber.last.opened();
    expect([await opening, waiting.hints, waiting.hintedAt]).toEqual([0, 1, time.now]);
    expect([waiting.isSubscribed, waiting.ownListeners]).toEqual([true, 2]);
    // What was sent before it was open is polled for.
    expect(await wait({})).toBe(0);
    expect(await wait({ hintsBefore: 0 })).toBe(0);
    expect(await wait({ hintsBefore: 1 })).toBe(1_000);
    for (const message of ['free', 'left', 'other']) {
      const waited = wait({ hintsBefore: waiting.hints });
      await time.advance(20);
      subscriber.last.onMessage(message);
      expect(await waited).toBe(message === 'free' ? 20 : 1_000);
    }
    let hints = 0;
    const stop = waiting.onRelease(() => hints++);
    const woken = wait({ hintsBefore: waiting.hints });
    waiting.wake();
    expect([await woken, hints]).toEqual([0, 1]);
    stop();
    waiting.wake();
    expect([hints, subscriber.all.length]).toEqual([1, 1]);
    // A second after the last one has left, the subscription ends.
    await time.advance(999);
    expect(waiting.isSubscribed).toBe(true);
    await time.advance(1);
    expect([waiting.isSubscribed, waiting.ownListeners]).toEqual([false, 0]);
    expect(await wait({ hintsBefore: 1 })).toBe(100);
    expect(subscriber.all).toHaveLength(2);
  });

  it('A waiter that is not told that the holder changed polls every interval, until it is told something', async () => {
    const { subscriber, waiting, wait } = start();
    const opening = wait({});
    subscriber.last.opened();
    await opening;
    const pause = (holder: string) => wait({ hintsBefore: waiting.hints, holder });
    expect([await pause('a'), await pause('a'), await pause(''), await pause('b')]).toEqual([
      1_000, 1_000, 1_000, 1_000,
    ]);
    expect([await pause('c'), await pause('c'), await pause('')]).toEqual([100, 100, 100]);
    subscriber.last.onMessage('free');
    expect([await pause('d'), await pause('e')]).toEqual([1_000, 100]);
    subscriber.last.onMessage('free');
    // The message came while the attempt was in flight: nothing is known of the time before it.
    const hintsBefore = waiting.hints - 1;
    expect([await wait({ hintsBefore, holder: 'f' }), await pause('f'), await pause('f')]).toEqual([0, 1_000, 1_000]);
    expect([await wait({ holder: 'g' }), await pause('f')]).toEqual([0, 1_000]);
    // A subscription that was made anew begins anew.
    subscriber.last.over();
    const again = wait({ holder: 'h', hintsBefore: waiting.hints });
    subscriber.last.opened();
    await again;
    expect(await pause('i')).toBe(1_000);
  });

  it('A waiter that is interrupted leaves its subscription', async () => {
    const { subscriber, waiting } = start();
    const wait = new Wait('k', 10_000, undefined);
    const waits = waiting.wait({ granted: false, remaining: 60_000, roundTrip: 1 }, wait);
    subscriber.last.opened();
    await waits;
    const again = waiting.wait({ granted: false, remaining: 60_000, roundTrip: 1, hintsBefore: 1 }, wait);
    await time.advance(0);
    wait.interrupt(new Error('closed'));
    await expect(again).rejects.toThrow('closed');
    await time.advance(1_000);
    expect(subscriber.last.isOver).toBe(true);
  });
});
