import { ClientClosedError, SocketClosedUnexpectedlyError } from 'redis';
import type * as Library from '../lib';

type Errors = Pick<typeof Library, 'LockLostError' | 'LockTimeoutError'>;

/** Answers of Redis: as the error of another client, with which an application aborts what belongs together. */
const ANSWERS = [
  "READONLY You can't write against a read only replica.",
  'LOADING Redis is loading the dataset in memory',
  'BUSY Redis is busy running a script.',
  'MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no.',
  'CLUSTERDOWN The cluster is down',
  'TRYAGAIN Multiple keys request during rehashing of slot',
  'MOVED 3999 127.0.0.1:6381',
  'NOREPLICAS Not enough good replicas to write.',
  'WRONGTYPE Operation against a key holding the wrong kind of value',
  'NOSCRIPT No matching script. Please use EVAL.',
  'NOPERM this user has no permissions',
  "OOM command not allowed when used memory > 'maxmemory'.",
];

/** What else applications abort with. The reason of a bare `abort()` is an error that the platform makes. */
const OTHERS = {
  error: () => new Error('aborted by the caller'),
  none: () => undefined,
  null: () => null,
  text: () => 'READONLY stop',
  number: () => 0,
  object: () => ({ message: 'LOADING stop' }),
  'closed client': () => new ClientClosedError(),
  'lost connection': () => new SocketClosedUnexpectedlyError(),
  refusal: ({ LockTimeoutError }) => new LockTimeoutError('another', 100),
  loss: ({ LockLostError }) => new LockLostError('another', 'expired'),
} as const satisfies Record<string, (errors: Errors) => unknown>;

export const ABORT_REASONS: readonly string[] = [...ANSWERS, ...Object.keys(OTHERS)];

/** Made anew for each call. */
export function abortReason(name: string, errors: Errors): unknown {
  const make = (OTHERS as Record<string, (errors: Errors) => unknown>)[name];
  return make === undefined ? new Error(name) : make(errors);
}
