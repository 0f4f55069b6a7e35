import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Ticket } from '../../lib/protocols/fair/ticket';
import { IDLE, POLL_INTERVAL, PresenceFixture, UNAVAILABLE_AFTER } from './presence-fixture';

/** How often the caller of the ticket was resumed. */
const resumptionsOf = (ticket: Ticket) => {
  const resumed = { times: 0 };
  ticket.attach(() => resumed.times++);
  return resumed;
};

describe('A poll of a fair lock', () => {
  let fixture: PresenceFixture;

  beforeEach(() => {
    fixture = new PresenceFixture();
  });

  afterEach(() => fixture.close());

  it('is not sent for a waiter that has been granted the lock', async () => {
    const ticket = await fixture.listening();
    ticket.offered = `${ticket.id}@1`;
    fixture.presence.poll();
    await fixture.clock.advance(0);
    expect(fixture.polls).toEqual([]);
  });

  it('lets a caller make another attempt whose ticket is not in the queue', async () => {
    const resumed = resumptionsOf(await fixture.listening());
    fixture.reply = { score: '' };
    fixture.presence.poll();
    await fixture.clock.advance(0);
    expect(resumed.times).toBe(1);
  });

  it('says nothing of a caller that got the turn meanwhile', async () => {
    await fixture.listening();
    fixture.reply = { score: '' };
    fixture.presence.poll();
    const resumed = resumptionsOf(fixture.admit(2));
    await fixture.clock.advance(0);
    expect(resumed.times).toBe(0);
    expect(fixture.renewed).toBe(0);
  });

  it('lets the caller make another attempt when a poll fails for good', async () => {
    const resumed = resumptionsOf(await fixture.listening());
    fixture.reply = new Error('NOPERM this user has no permissions');
    fixture.presence.poll();
    await fixture.clock.advance(0);
    expect(resumed.times).toBe(1);
  });

  it('polls again after a failure that may pass, and lets the caller try once Redis has been silent for too long', async () => {
    const resumed = resumptionsOf(await fixture.listening());
    fixture.reply = new Error('no answer');
    fixture.presence.poll();
    await fixture.clock.advance(UNAVAILABLE_AFTER - IDLE);
    expect(fixture.polls.length).toBeGreaterThan(UNAVAILABLE_AFTER / POLL_INTERVAL - 1);
    expect(resumed.times).toBe(0);
    await fixture.clock.advance(2 * POLL_INTERVAL);
    expect(resumed.times).toBeGreaterThan(0);
  });
});
