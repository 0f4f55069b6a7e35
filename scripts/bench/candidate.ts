/** Of the server, or of the proxy in front of it. */
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

export type Release = () => unknown;

/** A lock library, opened in one process with its default options. What it cannot do is absent. */
export interface Locks {
  /** Waits without a time limit. */
  acquire(key: string): Promise<Release>;
  /** The locks of several keys, all or nothing. */
  acquireAll?(keys: readonly string[]): Promise<Release>;
  /** As one of many readers, while `acquire` is that of the only writer. */
  acquireShared?(key: string): Promise<Release>;
  /** One of the permits of a semaphore. */
  acquirePermit?(key: string, permits: number): Promise<Release>;
  /** A lock that the library renews. */
  keep?(key: string): Promise<Release>;
  /** Somebody listens for its loss. */
  acquireListened?(key: string): Promise<Release>;
  /** The result of a task that one caller of all processes runs for all. */
  once?(key: string, task: () => Promise<string>): Promise<string>;
  /** The object of a lock that lives between its uses. */
  object?(key: string): object;
}

/** A lock library, or a floor: no library, but the least that the work costs. */
export interface Candidate {
  /** For the option --only. */
  readonly id: string;
  readonly title: string;
  /** The packages whose versions are reported. */
  readonly packages: readonly string[];
  /** Similar to another candidate, or far behind all others; left out with --quick. */
  readonly isVariant?: boolean;
  /** The candidate that it is compared with, where that is not the floor of the scenario. */
  readonly floor?: string;
  /** A build of this package. */
  readonly isOurs?: boolean;
  /** Of one that is an earlier build: the candidate that is opened with it, and the entry file of the build. */
  readonly earlier?: { readonly of: string; readonly library: string };
  open(options: OpenOptions): Promise<Locks>;
}
