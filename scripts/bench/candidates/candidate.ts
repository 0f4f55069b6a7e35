/** Where the server, or the proxy in front of it, listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface OpenOptions {
  readonly address: Address;
  /** ms; the life of a lock's key, where the library lets the caller choose. */
  readonly ttl: number;
}

export type Release = () => Promise<unknown>;

/** A lock library, opened in one process. Whatever is not said here is left at the library's own defaults. */
export interface Locks {
  /** Waits for as long as it takes. */
  acquire(key: string): Promise<Release>;
  /** Takes a lock that the library itself keeps from expiring; absent where it cannot. */
  keep?(key: string): Promise<Release>;
  /** The object that stands for a lock between its uses; absent where there is none. */
  object?(key: string): object;
}

/**
 * `floor`: no library at all, the least that Redis and node-redis can do; `ours`; a `polling` peer asks again until it
 * has the lock; a `notified` one is told of a release.
 */
export type CandidateKind = 'floor' | 'ours' | 'polling' | 'notified';

export interface Candidate {
  /** What `--only` knows it by. */
  readonly id: string;
  readonly title: string;
  readonly kind: CandidateKind;
  /** Much like another one; left out when it has to be quick. */
  readonly isVariant?: boolean;
  /** The packages whose versions count. */
  readonly packages: readonly string[];
  open(options: OpenOptions): Promise<Locks>;
}
