import type { Mutation } from './mutation';

/** The rule of entry of shared locks, and what keeps their queue moving. */
export const SHARED_MUTATIONS: readonly Mutation[] = [
  {
    name: 'one-permit-too-many',
    finding: 'one more than the permits of a semaphore enter',
    types: ['semaphore'],
    replacements: [['permitsOf(waiter.ticket) <= (permits or 1)', 'permitsOf(waiter.ticket) <= (permits or 1) + 1']],
  },
  {
    name: 'tickets-not-counted',
    finding: 'a caller takes the permit of one that waits in front of it',
    types: ['semaphore'],
    replacements: [['holders = holders + permitsOf(waiter.ticket)\n', '\n']],
  },
  {
    name: 'permits-counted-once',
    finding: 'a caller that has several permits counts as one that has one',
    types: ['semaphore'],
    replacements: [['holders = holders + permitsOf(holder) - 1', 'holders = holders']],
  },
  {
    name: 'permits-counted-twice',
    finding: 'the permits of a caller that has several are taken twice: others wait though there are enough',
    types: ['semaphore'],
    replacements: [['holders = holders + permitsOf(holder) - 1', 'holders = holders + permitsOf(holder)']],
  },
  {
    name: 'permits-passed-on-as-they-are',
    finding: 'the hold of a caller with one permit goes to one that asks for several',
    types: ['semaphore'],
    replacements: [[' && this.permits === request.permits;', ';']],
  },
  {
    name: 'reader-beside-writer',
    finding: 'a reader enters while a writer is inside',
    types: ['read-write'],
    replacements: [['return not isWritten end', 'return true end']],
  },
  {
    name: 'writer-beside-reader',
    finding: 'a writer enters while readers are inside',
    types: ['read-write'],
    replacements: [['return holders == 0\nend', 'return not isWritten\nend']],
  },
  {
    name: 'reader-before-waiting-writer',
    finding: 'readers that come later enter before a writer that waits',
    types: ['read-write'],
    replacements: [['isOpen = isOpen and mayEnter(waiter)', 'isOpen = mayEnter(waiter)']],
  },
  {
    name: 'reader-joins-before-waiting-writer',
    finding: 'a reader enters beside others of its process though a writer waits',
    types: ['read-write'],
    replacements: [['aloneAt: token === 1 ? wanted : void 0', 'aloneAt: wanted']],
  },
  {
    name: 'released-though-taken-over',
    finding: 'a position in the queue that the next caller has taken over is given back by the one before',
    types: ['semaphore'],
    replacements: [['this.#hasLeft && this.#hold === hold', 'this.#hasLeft']],
  },
  {
    name: 'group-never-closes',
    finding: 'the readers of a process take in others for as long as their hold is renewed',
    types: ['read-write'],
    replacements: [['return isOpen && now - hold.acquiredAt <= FRESH;', 'return isOpen;']],
  },
  {
    name: 'writers-follow-each-other',
    finding: 'readers that wait while a writer leaves wait for the next one too',
    types: ['read-write'],
    replacements: [["if wasWritten and holders == 0 and waiter.kind == 'read' then", 'if false then']],
  },
  {
    name: 'let-in-before-min-hold',
    finding: 'waiters are let in while a permit, or a lock, stays taken until its minHold ends',
    types: ['read-write'],
    replacements: [['letIn(nil, channel, not keeps and not wasKept)', 'letIn(nil, channel, true)']],
  },
  {
    name: 'ended-leases-counted',
    finding: 'the permit of a process that died is never free again while others hold the rest',
    types: ['semaphore'],
    replacements: [["return redis.call('ZREMRANGEBYSCORE', lock, '-inf', digits(now))", 'return 0']],
  },
  {
    name: 'kept-permit-free',
    finding: 'a permit is free before the minHold of its caller ends',
    types: ['semaphore'],
    replacements: [
      ["redis.call('ZADD', lock, digits(now + math.max(1, math.ceil(math.min(left, minHold - age)))), kept)", ''],
    ],
  },
  {
    name: 'silence-behind-others',
    finding: 'a caller behind another one of its process gets null though Redis has been silent',
    types: ['semaphore', 'read-write'],
    replacements: [
      ['availability.isRefused(now) && availability.isContended(now) && ', 'availability.isRefused(now) && '],
    ],
  },
  {
    name: 'tickets-for-ever',
    finding: 'the ticket of a process that died holds up all others',
    types: ['semaphore', 'read-write'],
    replacements: [['elseif ticket == member or tonumber(second) > now then', 'elseif second then']],
  },
];
