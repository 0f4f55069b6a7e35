import type { Language } from '../programs';

/** Address of the server, or of the proxy in front of it. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface OpenOptions {
  readonly address: Address;
  /** ms, for libraries with a configurable ttl. */
  readonly ttl: number;
  /** The entry file of the build of ours that is measured. */
  readonly library: string;
}

export type Release = () => Promise<unknown>;

/** A lock library, opened in one process with its default options. */
export interface Locks {
  /** Waits without a time limit. */
  acquire(key: string): Promise<Release>;
  /** Acquires the locks of several keys, all or nothing; absent if it cannot. */
  acquireAll?(keys: readonly string[]): Promise<Release>;
  /** Acquires the lock as one of many readers, while `acquire` is that of the only writer; absent if it cannot. */
  acquireShared?(key: string): Promise<Release>;
  /** Acquires a lock that the library renews; absent if it cannot. */
  keep?(key: string): Promise<Release>;
  /** The object of a lock that lives between its uses; absent if there is none. */
  object?(key: string): object;
}

/**
 * `floor`: no library, the least that a lock on Redis and node-redis costs. `polling`: a peer whose waiters poll.
 * `notified`: a peer whose waiters are notified of a release. `observed`: ours, with subscribers of its channels. `replicated`: ours, with `minReplicas`.
 * `semaphore`: of ours or of a peer, with `PERMITS` holders. `readWrite`: of ours or of a peer.
 */
export type CandidateKind =
  | 'floor'
  | 'ours'
  | 'observed'
  | 'replicated'
  | 'polling'
  | 'notified'
  | 'semaphore'
  | 'readWrite';

/** Of every semaphore. */
export const PERMITS = 4;

export interface Candidate {
  /** For the option --only. */
  readonly id: string;
  readonly title: string;
  readonly kind: CandidateKind;
  /** Similar to another candidate, or far behind all others; left out with --quick. */
  readonly isVariant?: boolean;
  /** Of a peer that does not run in Node. */
  readonly language?: Language;
  /** The packages whose versions are reported. */
  readonly packages: readonly string[];
}

/** A candidate that runs in Node. */
export interface NodeCandidate extends Candidate {
  open(options: OpenOptions): Promise<Locks>;
}
