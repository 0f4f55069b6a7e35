import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Acquisition } from '../../lib/acquire/acquisition';
import { Availability } from '../../lib/acquire/availability';
import { Poller } from '../../lib/protocols/fair/poller';
import { type FairServices, Presence } from '../../lib/protocols/fair/presence';
import type { PollReply, QueueFormat } from '../../lib/protocols/fair/queue-format';
import type { Ticket } from '../../lib/protocols/fair/ticket';
import { Waiters } from '../../lib/protocols/fair/waiters';
import { LockNames } from '../../lib/redis/names';
import type { Subscriber } from '../../lib/redis/subscriber';
import { Subscription } from '../../lib/redis/subscription';
import { FakeClock } from '../support/fake-clock';

const IDLE = 100;
const POLL_INTERVAL = 1_000;
const UNAVAILABLE_AFTER = 10_000;

/** ms by which a poll may be early: those that are due soon go together. */
const EARLY = 20;

describe('Presence', () => {
  let clock: FakeClock;
  let polls: { readonly at: number; readonly tickets: readonly string[]; readonly notifiedBy: string }[];
  let reply: Partial<PollReply> | Error;
  let subscription: Subscription | undefined;
  let ended: number;
  let poller: Poller;
  let waiters: Waiters;
  let presence: Presence;
  const names = new LockNames('registry', 'key');

  /** What a poll needs of the format. */
  const format = {
    countsListeners: true,
    channels: () => ['releases'],
    grants: (_names: LockNames, process: string) => `grants:${process}`,
    async pollFor(_names: LockNames, _process: string, notifiedBy: string, tickets: readonly Ticket[]) {
      polls.push({ at: clock.now, tickets: tickets.map(({ id }) => id), notifiedBy });
      if (reply instanceof Error) throw reply;
      return { owner: undefined, token: '', life: 60_000, sentAt: clock.now, hasLapsed: false, missing: [], ...reply };
    },
  } as unknown as QueueFormat;

  const newSubscription = () =>
    new Subscription(
      ['channel'],
      () => undefined,
      () => ended++,
    );

  beforeEach(() => {
    clock = new FakeClock();
    [polls, reply, ended] = [[], {}, 0];
    subscription = newSubscription();
    poller = new Poller();
    const services: FairServices = {
      format,
      subscriber: { subscribe: () => subscription } as unknown as Subscriber,
      poller,
      pollInterval: POLL_INTERVAL,
      idleBetweenTries: IDLE,
      commandTimeout: 5_000,
      unavailableAfter: UNAVAILABLE_AFTER,
      onNotificationRefused: () => undefined,
    };
    waiters = new Waiters(names, format);
    presence = new Presence(names, services, waiters, new Availability(), {
      onMessage: () => undefined,
      onReply: ({ life }) => presence.schedulePoll(life),
    });
  });

  afterEach(() => {
    poller.close();
    clock.restore();
  });

  const admit = (number: number): Ticket => {
    const acquisition = new Acquisition(`process:${number}`, 60_000, true, undefined);
    acquisition.stamp();
    return waiters.ticketFor(acquisition);
  };

  /** A caller waits, messages reach it, and Redis knows that. */
  const listening = async () => {
    const ticket = admit(1);
    presence.listen();
    subscription?.settle(true);
    await clock.advance(0);
    polls.length = 0;
    return ticket;
  };

  /** Whether each ticket was resumed, by the number of resumptions. */
  const resumptionsOf = (tickets: readonly Ticket[]) => {
    const resumed = tickets.map(() => 0);
    tickets.forEach((ticket, i) => void ticket.attach(() => resumed.splice(i, 1, (resumed[i] ?? 0) + 1)));
    return resumed;
  };

  it('polls as soon as messages can arrive, so that Redis knows it', async () => {
    admit(1);
    admit(2);
    presence.listen();
    expect(presence.notifiedBy).toBe('poll');
    subscription?.settle(true);
    await clock.advance(0);
    expect(polls).toEqual([{ at: 1_000, tickets: ['process:1', 'process:2'], notifiedBy: 'message' }]);
  });

  it('polls once for all its waiters, once in each poll interval, while messages arrive', async () => {
    await listening();
    for (let i = 2; i <= 100; i++) admit(i);
    await clock.advance(10 * POLL_INTERVAL);
    expect(polls).toHaveLength(10);
    expect(polls.every(({ tickets }) => tickets.length === 100)).toBe(true);
  });

  it('polls when the life of the key ends, if that is earlier', async () => {
    await listening();
    presence.schedulePoll(300);
    await clock.advance(300 - EARLY);
    expect(polls).toEqual([]);
    await clock.advance(EARLY + 1);
    expect(polls).toHaveLength(1);
  });

  it.each([2 ** 40, Number.POSITIVE_INFINITY])('polls as often for a key that lives for %p ms', async (life) => {
    await listening();
    presence.schedulePoll(life);
    reply = { life };
    await clock.advance(3 * POLL_INTERVAL);
    expect(polls).toHaveLength(3);
  });

  it('polls in each idle interval while no message can arrive, once for all of them', async () => {
    subscription = undefined;
    for (let i = 0; i < 50; i++) admit(i);
    presence.listen();
    presence.schedulePoll(60_000);
    await clock.advance(10 * IDLE);
    expect(polls).toHaveLength(10);
    expect(polls.every(({ tickets, notifiedBy }) => tickets.length === 50 && notifiedBy === 'poll')).toBe(true);
  });

  it('polls in each idle interval for a while after its process let a grant run out', async () => {
    await listening();
    reply = { hasLapsed: true };
    presence.poll();
    await clock.advance(0);
    reply = {};
    polls.length = 0;
    await clock.advance(10 * IDLE);
    expect(polls).toHaveLength(10);
    await clock.advance(10_000);
    polls.length = 0;
    await clock.advance(3 * POLL_INTERVAL);
    expect(polls).toHaveLength(3);
  });

  it('polls when a message may have been missed', async () => {
    await listening();
    subscription?.wake();
    await clock.advance(0);
    expect(polls).toHaveLength(1);
  });

  it('polls once more when a message may have been missed while it polled', async () => {
    await listening();
    presence.poll();
    subscription?.wake();
    subscription?.wake();
    await clock.advance(0);
    expect(polls).toHaveLength(2);
  });

  it('leaves out the waiters that have been granted the lock', async () => {
    const first = await listening();
    admit(2);
    first.offered = `${first.id}@1`;
    presence.poll();
    await clock.advance(0);
    expect(polls.map(({ tickets }) => tickets)).toEqual([['process:2']]);
  });

  it('sends many tickets by several scripts', async () => {
    await listening();
    for (let i = 2; i <= 1_200; i++) admit(i);
    presence.poll();
    await clock.advance(0);
    expect(polls.map(({ tickets }) => tickets.length)).toEqual([500, 500, 200]);
  });

  it('lets the callers make another attempt whose tickets are not in the queue', async () => {
    const tickets = [await listening(), admit(2), admit(3)];
    const resumed = resumptionsOf(tickets);
    reply = { missing: [1] };
    presence.poll();
    await clock.advance(0);
    expect(resumed).toEqual([0, 1, 0]);
  });

  it('lets every caller make another attempt when a poll fails for good', async () => {
    const resumed = resumptionsOf([await listening(), admit(2)]);
    reply = new Error('NOPERM this user has no permissions');
    presence.poll();
    await clock.advance(0);
    expect(resumed).toEqual([1, 1]);
  });

  it('polls again after a failure that may pass, and lets every caller try once Redis has been silent for too long', async () => {
    const resumed = resumptionsOf([await listening(), admit(2)]);
    reply = new Error('no answer');
    presence.poll();
    await clock.advance(UNAVAILABLE_AFTER - IDLE);
    expect(polls.length).toBeGreaterThan(UNAVAILABLE_AFTER / POLL_INTERVAL - 1);
    expect(resumed).toEqual([0, 0]);
    await clock.advance(2 * POLL_INTERVAL);
    expect(Math.min(...resumed)).toBeGreaterThan(0);
  });

  it('leaves no timer when the last waiter leaves, and no subscription a moment later', async () => {
    await listening();
    admit(2);
    waiters.leave('process:1');
    presence.leave();
    await clock.advance(5_000);
    expect(ended).toBe(0);
    waiters.leave('process:2');
    presence.leave();
    presence.leave();
    // The subscription stays for a moment; its timer does not keep the process alive.
    expect(clock.keepingAlive).toBe(0);
    polls.length = 0;
    await clock.advance(5_000);
    expect(ended).toBe(1);
    expect(polls).toEqual([]);
    expect(clock.pending).toBe(0);
    subscription?.wake();
    await clock.advance(5_000);
    expect(polls).toEqual([]);
  });

  it('listens again after its subscription has ended', async () => {
    await listening();
    subscription?.over();
    expect(presence.notifiedBy).toBe('poll');
    subscription = newSubscription();
    await clock.advance(POLL_INTERVAL);
    subscription.settle(true);
    await clock.advance(0);
    expect(presence.notifiedBy).toBe('message');
  });
});
