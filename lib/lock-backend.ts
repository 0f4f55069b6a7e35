import type { LockProtocol } from './protocols/protocol';
import type { Connection } from './redis/connection';
import type { LockNames } from './redis/names';

/** What a look at a lock found. */
export interface Inspected {
  /** `undefined`: the lock is free. */
  readonly owner: string | undefined;
  /** ms */
  readonly remaining: number;
  readonly fencingToken: number | undefined;
  readonly waiting: number | undefined;
}

/** Looks at locks, and unlocks them by force. Timeouts are in ms. */
export interface LockInspector {
  inspect(names: LockNames, timeout: number): Promise<Inspected>;
  /** Resolves to what was found before. */
  forceUnlock(names: LockNames, timeout: number): Promise<Inspected>;
}

/**
 * Where the locks of one registry are: in Redis, or in memory. Everything else (the cache, leases and their renewal,
 * scopes, local queues, closing) is the same for all.
 */
export interface LockBackend {
  readonly connection: Connection;
  readonly inspector: LockInspector;
  /** The protocol of one lock. Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  open(names: LockNames): LockProtocol;
  /**
   * The names of keys that begin with `prefix`, and go on as the glob `match` says, step by step. A name may come more
   * than once, and may be of a key that is no lock. `count`: about how many keys to look at in a step. `timeout`: ms
   * for a step. Throws `TypeError` where that is not possible.
   */
  keys(prefix: string, match: string, count: number, timeout: number): AsyncIterable<string[]>;
  /** Calls back each time that a connection was made again, perhaps to other data. Returns what stops it. */
  onReconnect(listener: () => void): () => void;
  /** Ends timers, subscriptions and connections of its own. */
  close(): Promise<void>;
}
