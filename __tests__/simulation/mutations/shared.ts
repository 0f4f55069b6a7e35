import type { Mutation } from './mutation';

/** The rule of entry of shared locks, and what keeps their queue moving. */
export const SHARED_MUTATIONS: readonly Mutation[] = [
  {
    name: 'one-permit-too-many',
    finding: 'one more than the permits of a semaphore enter',
    types: ['semaphore'],
    replacements: [['holders + front < (permits or 1)', 'holders + front <= (permits or 1)']],
  },
  {
    name: 'tickets-not-counted',
    finding: 'a caller takes the permit of one that waits in front of it',
    types: ['semaphore'],
    replacements: [['holders + front < (permits or 1)', 'holders < (permits or 1)']],
  },
  {
    name: 'reader-beside-writer',
    finding: 'a reader enters while a writer is inside',
    types: ['read-write'],
    replacements: [['return not isWritten and writers == 0 end', 'return writers == 0 end']],
  },
  {
    name: 'writer-beside-reader',
    finding: 'a writer enters while readers are inside',
    types: ['read-write'],
    replacements: [['return holders + front == 0', 'return front == 0 and not isWritten']],
  },
  {
    name: 'reader-before-waiting-writer',
    finding: 'readers that come later enter before a writer that waits',
    types: ['read-write'],
    replacements: [['return not isWritten and writers == 0 end', 'return not isWritten end']],
  },
  {
    name: 'ended-leases-counted',
    finding: 'the permit of a process that died is never free again while others hold the rest',
    types: ['semaphore'],
    replacements: [["return redis.call('ZREMRANGEBYSCORE', lock, '-inf', digits(now)) end", 'return 0 end']],
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
