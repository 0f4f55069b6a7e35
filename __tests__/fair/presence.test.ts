import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { IDLE, POLL_INTERVAL, PresenceFixture } from './presence-fixture';

/** ms by which a poll may be early: those that are due soon go together. */
const EARLY = 20;

describe('A process in the queue of a fair lock', () => {
  let fixture: PresenceFixture;

  beforeEach(() => {
    fixture = new PresenceFixture();
  });

  afterEach(() => fixture.close());

  it('polls as soon as messages can arrive, so that Redis knows it', async () => {
    fixture.admit(1);
    fixture.presence.listen();
    expect(fixture.presence.notifiedBy).toBe('poll');
    fixture.subscription?.confirmed(true);
    await fixture.clock.advance(0);
    expect(fixture.polls).toEqual([{ at: 1_000, ticket: 'process:1', notifiedBy: 'message' }]);
  });

  it('polls once in each poll interval while messages arrive', async () => {
    await fixture.listening();
    await fixture.clock.advance(10 * POLL_INTERVAL);
    expect(fixture.polls).toHaveLength(10);
  });

  it('polls for the caller that has the turn now', async () => {
    await fixture.listening();
    fixture.admit(2);
    await fixture.clock.advance(POLL_INTERVAL);
    expect(fixture.polls.map(({ ticket }) => ticket)).toEqual(['process:2']);
  });

  it('polls when the life of the key ends, if that is earlier', async () => {
    await fixture.listening();
    fixture.presence.schedulePoll(300);
    await fixture.clock.advance(300 - EARLY);
    expect(fixture.polls).toEqual([]);
    await fixture.clock.advance(EARLY + 1);
    expect(fixture.polls).toHaveLength(1);
  });

  it.each([2 ** 40, Number.POSITIVE_INFINITY])('polls as often for a key that lives for %p ms', async (life) => {
    await fixture.listening();
    fixture.presence.schedulePoll(life);
    fixture.reply = { life };
    await fixture.clock.advance(3 * POLL_INTERVAL);
    expect(fixture.polls).toHaveLength(3);
  });

  it('polls in each idle interval while no message can arrive', async () => {
    fixture.subscription = undefined;
    fixture.admit(1);
    fixture.presence.listen();
    fixture.presence.schedulePoll(60_000);
    await fixture.clock.advance(10 * IDLE);
    expect(fixture.polls).toHaveLength(10);
    expect(fixture.polls.every(({ notifiedBy }) => notifiedBy === 'poll')).toBe(true);
  });

  it.each([
    ['its process let a grant run out', { score: '' }, 2],
    ['Redis knew of no listener of its process', { isUnreachable: true }, 1],
  ])('polls in each idle interval for a while, and subscribes again once, after %s', async (_, reply, polls) => {
    await fixture.listening();
    fixture.reply = reply;
    for (let i = 0; i < polls; i++) {
      fixture.presence.poll();
      await fixture.clock.advance(0);
    }
    expect(fixture.renewed).toBe(1);
    fixture.reply = {};
    fixture.polls.length = 0;
    await fixture.clock.advance(10 * IDLE);
    expect(fixture.polls).toHaveLength(10);
    if ('isUnreachable' in reply) expect(fixture.polls.every(({ notifiedBy }) => notifiedBy === 'poll')).toBe(true);
    await fixture.clock.advance(10_000);
    fixture.polls.length = 0;
    await fixture.clock.advance(3 * POLL_INTERVAL);
    expect(fixture.polls).toHaveLength(3);
  });

  it('polls when a message may have been missed', async () => {
    await fixture.listening();
    fixture.subscription?.wake();
    await fixture.clock.advance(0);
    expect(fixture.polls).toHaveLength(1);
  });

  it('polls once more when a message may have been missed while it polled', async () => {
    await fixture.listening();
    fixture.presence.poll();
    fixture.subscription?.wake();
    fixture.subscription?.wake();
    await fixture.clock.advance(0);
    expect(fixture.polls).toHaveLength(2);
  });

  it('leaves no timer when the waiter leaves, and no subscription a moment later', async () => {
    await fixture.listening();
    fixture.admit(2);
    fixture.presence.leave();
    await fixture.clock.advance(5_000);
    expect(fixture.ended).toBe(0);
    fixture.leave();
    fixture.leave();
    // The subscription stays for a moment; its timer does not keep the process alive.
    expect(fixture.clock.keepingAlive).toBe(0);
    fixture.polls.length = 0;
    await fixture.clock.advance(5_000);
    expect(fixture.ended).toBe(1);
    expect(fixture.polls).toEqual([]);
    expect(fixture.clock.pending).toBe(0);
    fixture.subscription?.wake();
    await fixture.clock.advance(5_000);
    expect(fixture.polls).toEqual([]);
  });

  it('listens again after its subscription has ended', async () => {
    await fixture.listening();
    fixture.subscription?.over();
    expect(fixture.presence.notifiedBy).toBe('poll');
    fixture.subscription = fixture.newSubscription();
    await fixture.clock.advance(POLL_INTERVAL);
    fixture.subscription.confirmed(true);
    await fixture.clock.advance(0);
    expect(fixture.presence.notifiedBy).toBe('message');
  });
});
