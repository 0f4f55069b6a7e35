import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Ticket } from '../../lib/protocols/fair/ticket';
import { IDLE, POLL_INTERVAL, PresenceFixture, UNAVAILABLE_AFTER } from './presence-fixture';

/** How often each ticket was resumed. */
const resumptionsOf = (tickets: readonly Ticket[]) => {
  const resumed = tickets.map(() => 0);
  tickets.forEach((ticket, i) => void ticket.attach(() => resumed.splice(i, 1, (resumed[i] ?? 0) + 1)));
  return resumed;
};

describe('A poll of a fair lock', () => {
  let fixture: PresenceFixture;

  beforeEach(() => {
    fixture = new PresenceFixture();
  });

  afterEach(() => fixture.close());

  it('leaves out the waiters that have been granted the lock', async () => {
    const first = await fixture.listening();
    fixture.admit(2);
    first.offered = `${first.id}@1`;
    fixture.presence.poll();
    await fixture.clock.advance(0);
    expect(fixture.polls.map(({ tickets }) => tickets)).toEqual([['process:2']]);
  });

  it('lets the callers make another attempt whose tickets are not in the queue', async () => {
    const tickets = [await fixture.listening(), fixture.admit(2), fixture.admit(3)];
    const resumed = resumptionsOf(tickets);
    fixture.reply = { missing: [1] };
    fixture.presence.poll();
    await fixture.clock.advance(0);
    expect(resumed).toEqual([0, 1, 0]);
  });

  it('lets every caller make another attempt when a poll fails for good', async () => {
    const resumed = resumptionsOf([await fixture.listening(), fixture.admit(2)]);
    fixture.reply = new Error('NOPERM this user has no permissions');
    fixture.presence.poll();
    await fixture.clock.advance(0);
    expect(resumed).toEqual([1, 1]);
  });

  it('polls again after a failure that may pass, and lets every caller try once Redis has been silent for too long', async () => {
    const resumed = resumptionsOf([await fixture.listening(), fixture.admit(2)]);
    fixture.reply = new Error('no answer');
    fixture.presence.poll();
    await fixture.clock.advance(UNAVAILABLE_AFTER - IDLE);
    expect(fixture.polls.length).toBeGreaterThan(UNAVAILABLE_AFTER / POLL_INTERVAL - 1);
    expect(resumed).toEqual([0, 0]);
    await fixture.clock.advance(2 * POLL_INTERVAL);
    expect(Math.min(...resumed)).toBeGreaterThan(0);
  });
});
