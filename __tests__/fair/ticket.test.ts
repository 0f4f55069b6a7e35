import { beforeEach, describe, expect, it } from '@jest/globals';
import { Acquisition } from '../../lib/acquire/acquisition';
import { grantedAt, processOf, Ticket, ticketOf } from '../../lib/protocols/fair/ticket';
import type { Grant } from '../../lib/protocols/protocol';

const grant: Grant = {
  granted: true,
  owner: 'process:1@1700000000000001',
  until: Number.POSITIVE_INFINITY,
  fencingToken: undefined,
  drift: 0,
};

describe('Ticket', () => {
  let ticket: Ticket;
  let resumed: unknown[];

  beforeEach(() => {
    ticket = new Ticket(new Acquisition('process:1', 60_000, true, undefined, 0));
    resumed = [];
  });

  const attach = () => ticket.attach((outcome) => resumed.push(outcome));

  it('resumes its caller with a grant', () => {
    attach();
    ticket.deliver(grant);
    expect(resumed).toEqual([grant]);
  });

  it('resumes its caller with a grant that arrived before the caller waited, once', () => {
    ticket.deliver(grant);
    attach()();
    attach();
    expect(resumed).toEqual([grant]);
  });

  it('does not resume a caller that has stopped waiting', () => {
    attach()();
    ticket.deliver(grant);
    ticket.retry();
    expect(resumed).toEqual([]);
  });

  it('forgets a grant when another attempt is needed', () => {
    ticket.offered = grant.owner;
    ticket.deliver(grant);
    ticket.retry();
    attach();
    expect(resumed).toEqual([]);
    expect(ticket.offered).toBeUndefined();
  });
});

describe('An owner value', () => {
  it.each([
    ['process:1', 'process:1', undefined],
    ['process:1@1700000000000001', 'process:1', 1_700_000_000_000.001],
  ])('%s names its process, its ticket %s, and the server time of a grant by hand-over', (owner, ticket, time) => {
    expect(processOf(owner)).toBe('process');
    expect(ticketOf(owner)).toBe(ticket);
    expect(grantedAt(owner)).toBe(time);
  });
});
