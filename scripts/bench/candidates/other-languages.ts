import type { Candidate } from './candidate';

const redisson = { language: 'java', packages: ['redisson'] } as const;

/** Peers in other languages. Their programs are in `peers/`, and know them by these ids. */
export const otherLanguages: readonly Candidate[] = [
  { ...redisson, id: 'redisson-lock', title: 'Redisson: RLock (Java)', kind: 'notified' },
  { ...redisson, id: 'redisson-fair-lock', title: 'Redisson: RFairLock (Java)', kind: 'notified' },
  { ...redisson, id: 'redisson-read-write-lock', title: 'Redisson: RReadWriteLock (Java)', kind: 'readWrite' },
  {
    id: 'rueidislock',
    title: 'rueidislock (Go)',
    kind: 'notified',
    language: 'go',
    packages: ['github.com/redis/rueidis'],
  },
  {
    id: 'redsync',
    title: 'redsync (Go)',
    kind: 'polling',
    language: 'go',
    packages: ['github.com/go-redsync/redsync/v4'],
  },
  {
    id: 'bsm-redislock',
    title: 'bsm/redislock (Go)',
    kind: 'polling',
    language: 'go',
    packages: ['github.com/bsm/redislock'],
  },
];
