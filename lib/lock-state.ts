/** What is known of a lock, all of one moment. */
export interface LockState {
  /** Somebody has the lock; or it was unlocked, and stays taken until its `minHold` ends. */
  readonly held: boolean;
  /** The value in Redis that says who; `undefined` when the lock is free. `kept@` before it: who unlocked it. */
  readonly owner: string | undefined;
  /**
   * The name of the registry in the owner value, by default host and pid; `undefined` for owners of other libraries.
   */
  readonly name: string | undefined;
  /** The registry that was asked has it, and has not unlocked it. */
  readonly isOurs: boolean;
  /** ms until the key expires unless it is renewed; `Infinity` without an expiry, 0 when the lock is free. */
  readonly remaining: number;
  /** With `fencing: true`: the last token of the lock, while it is held. */
  readonly fencingToken: number | undefined;
  /**
   * How many wait. `fair` and `redisson-fair`: processes in the queue. `pub-sub` and `redisson`:
   * connections that listen for a release, also for a second after they waited. Semaphores and read/write locks:
   * processes in the queue, a process that waits for reading and for writing twice. `undefined` where it cannot be
   * known: with `spin`; with `pub-sub` on a cluster; with `redisson` on a cluster without sharded channels; without the
   * right to PUBSUB.
   */
  readonly waiting: number | undefined;
  /**
   * Of a semaphore: how many permits are taken. Of a read/write lock: how many have it; the readers of a process have it
   * together. `owner` is the one that lasts longest.
   */
  readonly holders?: number;
}

/** A lock that `RedisLockRegistry.list` found. */
export interface ListedLock extends LockState {
  /** What the application locks. */
  readonly key: string;
}
