import type { Mutation } from './mutation';

/** What the fair queue needs. */
export const FAIR_MUTATIONS: readonly Mutation[] = [
  {
    name: 'grant-without-own-owner',
    finding: 'a grant by hand-over has the ticket itself as its owner',
    types: ['fair'],
    replacements: [["local owner = ticket .. '@' .. digits(now)", 'local owner = ticket']],
  },
  {
    name: 'entered-grant-forgotten',
    finding: 'a message that comes again releases the lease that runs',
    types: ['fair'],
    replacements: [['owner === void 0 || owner === this.#entered', 'owner === void 0']],
  },
  {
    name: 'grants-for-the-full-ttl',
    finding: 'a grant by hand-over that nobody takes keeps the lock for the full ttl',
    types: ['fair'],
    replacements: [["redis.call('SET', lock, owner, 'PX', window)", "redis.call('SET', lock, owner, 'PX', ttl)"]],
  },
  {
    name: 'positions-from-the-end-of-the-local-wait',
    finding: 'a caller that waited in its process goes behind later callers of other processes',
    types: ['fair'],
    replacements: [['Math.round(1e3 * (sentAt - this.hold.since))', '0 * (sentAt - this.hold.since)']],
  },
  {
    name: 'next-caller-before-the-queue',
    finding: 'the next caller of a process gets the lock before one of another process that called earlier',
    types: ['fair'],
    replacements: [['or score < tonumber(firstScore) and', 'or']],
  },
  {
    name: 'polls-create-tickets',
    finding: 'a poll that is executed late leaves a ticket',
    types: ['fair'],
    replacements: [
      [
        "local score = ttl and redis.call('ZSCORE', queue, ticket)",
        "ttl = ttl or '30000'\nlocal score = redis.call('ZSCORE', queue, ticket) or digits(now)",
      ],
    ],
  },
  {
    name: 'entry-without-proof',
    finding: 'a grant is counted from the arrival of its message',
    types: ['fair'],
    replacements: [
      ['return reliableUntil(Math.min(madeAt, receivedAt), window);', 'return reliableUntil(receivedAt, window);'],
    ],
  },
  {
    name: 'suspension-of-a-waiter-not-noticed',
    finding: 'a message was made long before it arrived, since the machine was suspended',
    types: ['fair'],
    replacements: [['if (wasSuspended(ticket.drift, driftNow)) return Number.NEGATIVE_INFINITY;', '']],
  },
  {
    name: 'no-polls',
    finding: 'a waiter that is not notified waits for ever',
    types: ['fair'],
    replacements: [['pollTimer.schedule(this.#pollNow, clock.now() +', 'void (clock.now() +']],
  },
  {
    name: 'token-of-nobody',
    finding: 'a lease without a token where another process without fencing granted it',
    types: ['fair'],
    replacements: [['if (this.#format.isFencing && grant.token === "") {', 'if (false) {']],
  },
  {
    name: 'token-of-an-earlier-grant',
    finding: 'a lease gets the token of an earlier grant',
    types: ['fair', 'mixed'],
    replacements: [
      ["return last and (not grantedAt or tonumber(last) >= tonumber(grantedAt)) and last or ''", "return last or ''"],
    ],
  },
  {
    name: 'kept-grant-forgotten',
    finding: 'a repeated message about a grant releases its lock before it is kept for its minHold',
    types: ['fair'],
    replacements: [
      [
        'async keep(ownerOrTicket, keep2, timeout) {',
        'async keep(ownerOrTicket, keep2, timeout) { this.#entered = void 0;',
      ],
    ],
  },
  {
    name: 'two-protocols-for-a-name',
    finding: 'a lock that was evicted and made anew releases the grants of its waiters',
    types: ['fair'],
    replacements: [['return this.#all.get(name)?.deref();', 'return void 0;']],
  },
];
