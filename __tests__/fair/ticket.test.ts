import { beforeEach, describe, expect, it } from '@jest/globals';
import { Hold } from '../../lib/core/hold';
import type { Grant } from '../../lib/core/protocol';
import { grantedAt, processOf, Ticket, ticketOf } from '../../lib/protocols/fair/ticket';
import { FakeProtocol } from '../support/fake-protocol';

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
    ticket = new Ticket(new Hold('process:1', 60_000, true, undefined, 0, new FakeProtocol()));
    resumed = [];
  });

  const attach = () => ticket.attach((outcome) => resumed.push(outcome));

  it('resumes its caller with a grant', () => {
    attach();
    ticket.deliver(grant);
    expect(resumed).toStrictEqual([grant]);
  });

  it('resumes its caller with a grant that arrived before the caller waited, once', () => {
    ticket.deliver(grant);
    attach()();
    attach();
    expect(resumed).toStrictEqual([grant]);
  });

  it('does not resume a caller that has stopped waiting', () => {
    attach()();
    ticket.deliver(grant);
    ticket.retry();
    expect(resumed).toStrictEqual([]);
  });

  it('resumes its caller without a grant when another attempt is needed', () => {
    attach();
    ticket.retry();
    expect(resumed).toStrictEqual([undefined]);
  });

  it('resumes its caller once for a retry that came before the caller waited', () => {
    ticket.retry();
    attach()();
    attach();
    expect(resumed).toStrictEqual([undefined]);
  });

  it('remembers the last of a grant and a retry that came before the caller waited', () => {
    ticket.offered = grant.owner;
    ticket.deliver(grant);
    ticket.retry();
    attach()();
    expect(resumed).toStrictEqual([undefined]);
    expect(ticket.offered).toBeUndefined();
    ticket.retry();
    ticket.deliver(grant);
    attach();
    expect(resumed).toStrictEqual([undefined, grant]);
  });

  it('does not resume its caller for a retry that came before the last attempt', () => {
    ticket.retry();
    ticket.asking(undefined);
    attach();
    expect(resumed).toStrictEqual([]);
  });

  it('keeps a grant that came before the last attempt', () => {
    ticket.deliver(grant);
    ticket.asking(undefined);
    attach();
    expect(resumed).toStrictEqual([grant]);
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
